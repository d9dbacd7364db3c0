"""The grid hacking game: one set of rules in several forms, which agree draw by draw and step by step.

`constants` holds the tables of the rules and `reference` the game in plain Python, written for
clarity. The other modules are faces: Gymnasium, JSON lines, text, pictures, a person at a terminal.
"""
