"""Environments that others wrote for the package `verifiers`: each runs in a process of its own, in its own Python.

Nothing here imports `verifiers`. The environment drives its rollouts and asks the policy at an address.
"""
