"""Rollouts: problems are answered in one turn or in many, and the answers are scored."""
