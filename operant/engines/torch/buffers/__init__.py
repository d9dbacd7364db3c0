"""Replay buffers of transitions and of frames."""
