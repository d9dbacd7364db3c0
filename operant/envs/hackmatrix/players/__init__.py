"""Players that need no learning: a scripted policy, and a planner that simulates with it."""
