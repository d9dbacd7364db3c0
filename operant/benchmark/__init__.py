"""Benchmark suites: cells to train, what they gave as files and as a table, and a gate against earlier results."""
