"""What is recorded of a session beside its results: heartbeats, the trace, and what became of every prompt."""
