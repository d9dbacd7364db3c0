"""The rules as one kernel a vector step: C++ that compiles for processors and for GPUs, called by XLA.

`source` has the rules, which say the same as `rules` does in JAX, draw by draw and bit by bit; `build`
compiles them where they run; `calls` are the functions of JAX around them.
"""
