"""Operant: one lab for reinforcement learning, from CartPole to language-model agents."""

__version__ = "0.1.0"
