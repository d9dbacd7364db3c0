"""The game as others use it: Gymnasium, text, JSON lines, a bridge to other programs, a person at a terminal."""
