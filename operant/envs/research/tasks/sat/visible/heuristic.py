"""Which literal to try next. A formula is a list of clauses, a clause a list of literals: 3 is true, -3 is not."""


def choose(formula):
    """The first variable that is left, set to true."""
    return min(abs(literal) for clause in formula for literal in clause)
