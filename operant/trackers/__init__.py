"""Trackers: a run's rows, episodes and videos copied to W&B, TensorBoard, MLflow or Trackio by processes of their own.

They read a run directory and write in its folder `track` only, so that nothing of a run depends on them.
"""
