"""The grid hacking game: one set of rules in several forms, which agree draw by draw and step by step.

`constants` holds the tables of the rules, `reference` the game in plain Python, written for clarity, and `rules` the
same as functions of JAX. `faces` are Gymnasium, text and JSON lines; `viewer` shows replays; `players` are scripted.
"""

from operant.envs.environment import Environment, Traits

HACKMATRIX = Environment(
    about="the grid hacking game",
    gymnasium="operant.envs.hackmatrix.faces.gym:HackMatrix",
    functional="operant.envs.hackmatrix.rules.env:HackMatrixEnv",
    traits=Traits(discrete=True, masked=True),
    replays="operant.envs.hackmatrix.viewer.show:show_games",
)
BRIDGE = Environment(gymnasium="operant.envs.hackmatrix.faces.bridge:HackMatrixBridge")
