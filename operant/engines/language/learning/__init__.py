"""Learning: advantages, losses, the optimizer, and the learner that takes the gradient steps."""
