"""Evaluation of a model on held-out problems, by this engine or by lm-evaluation-harness."""
