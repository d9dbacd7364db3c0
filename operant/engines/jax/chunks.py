"""How many updates a compiled program makes before the host logs, evaluates or saves."""

from __future__ import annotations

from operant.engines.jax.learner import Learner


def chunk_updates(learner: Learner) -> int:
    """Updates per chunk: those until the most frequent task of the host. A function of the spec alone."""
    meta = learner.spec.meta
    return max(1, min(meta.log_frequency, meta.eval_frequency, meta.save_frequency) // learner.frames)


def updates_left(learner: Learner, longest: int, frames: int) -> int:
    """Updates of the next chunk at `frames`: whole chunks from frame 0 on, cut short by the budget."""
    done, whole = frames // learner.frames, -(-learner.spec.env.max_frame // learner.frames)
    return min(longest - done % longest, whole - done)
