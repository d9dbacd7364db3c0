"""What to run: specs, read from files and checked before any work starts.

`schema.Spec` is the spec, `load.load` finds, reads and checks one, `describe.describe` and
`describe.json_schema` document for people and editors what may be written. Each is imported from its own
file, so that completing a name in a shell need not pay for the models. Nothing here computes:
no torch, jax or numpy is ever loaded.
"""
