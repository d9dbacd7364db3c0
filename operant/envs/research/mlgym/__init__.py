"""Tasks of a person's own MLGym checkout: their files, their data, and their evaluation in our sandbox."""
