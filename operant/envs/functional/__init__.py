"""Environments as pure functions of JAX, and how they are found; to look for one loads no JAX."""
