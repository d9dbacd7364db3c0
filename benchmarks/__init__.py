"""Measurements against peers, as ratios of one run."""
