"""Vector envs: how the copies of an environment are stepped, reset and replayed."""
