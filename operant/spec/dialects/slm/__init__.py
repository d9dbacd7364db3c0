"""SLM-Lab's spec files (version 5, and the older form with a `body`), translated to native specs.

The rule of every file here: a setting that Operant has is taken over as it is written; one that changes nothing is
dropped with a remark; one that would change results and has no counterpart is an error at its place. A key that is
not understood counts as such an error, because SLM-Lab itself never says that it ignores a key.
"""
