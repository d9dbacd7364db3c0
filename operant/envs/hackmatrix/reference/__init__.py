"""The game in plain Python, written for clarity straight from its rules.

It shares nothing but the tables of `constants` with the compiled form, so that the two can be held
against each other. `Game` is all that others need; `export` gives its state as plain data.
"""

from operant.envs.hackmatrix.reference.export import export
from operant.envs.hackmatrix.reference.game import Game, Outcome

__all__ = ["Game", "Outcome", "export"]
