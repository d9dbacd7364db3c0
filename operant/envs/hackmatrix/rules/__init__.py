"""The game as pure functions on fixed-shape arrays, for programs that compile it together with a learner.

One rule, one array operation over all environments: there is no branch per program. Within these
modules every array has its slots or cells first and the environments last, so a number of the game
meets a list of the game by plain broadcasting, and a single game is the same code without the last
axis. Sets of cells are bit boards (`bits`), lists are packed words (`state`).
"""
