"""The Python API: what the command line does, as functions. Import it as `operant`, whose names these are."""
