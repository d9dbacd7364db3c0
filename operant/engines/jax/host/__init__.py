"""Compiled learners on environments that step on the host: Gymnasium's, MuJoCo's, Atari's and one's own."""
