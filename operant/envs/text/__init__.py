"""Language tasks, whose answers can be verified: a prompt, and a verdict on what was answered."""
