"""SLM-Lab's spec files (version 5, and the older form with a `body`), translated to native specs.

The rule of every file here: a setting that Operant has is taken over as it is written; one that changes nothing is
left out with a remark; one that would change results and has no counterpart is an error at its place. A key that
SLM-Lab does not read is left out too, with a remark that names the nearest one.
"""
