"""More than one worker: ranks that train together, Ray actors, weight sync and asynchronous rollouts."""
