"""What every HTTP server of this package shares: who may ask it, how much, and how it listens."""
