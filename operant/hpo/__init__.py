"""WHICH runs to try next: hyperparameter search over the settings of a spec.

A search is an experiment whose trials are ordinary trials. What it does is a table of jobs: job n trains one trial up
to one rung. The decision of job n follows from the results of earlier jobs alone, so a search that was killed goes on
as if it had not been. (The package is called `hpo` because `operant.search` is the function.)
"""
