"""What a checkpoint plays by, as a function: arrays in and out, or text."""

from __future__ import annotations

from typing import Any, Protocol

from operant.engines import engine_of, require_packages
from operant.run.checkpoint import Checkpoint
from operant.run.run import Run
from operant.spec.stored import stored


class Policy(Protocol):
    """A trained policy. Observations are as the environment gives them, actions as its `step` takes them."""

    def act(self, obs: Any, deterministic: bool = True, mask: Any = None) -> Any:
        """The action for one observation, or one for each of a batch; of a language policy, the answer to a prompt.

        Deterministic actions are those of evaluation, the others are drawn as in training. `mask` says which
        discrete actions are legal.
        """
        ...

    def reset(self, where: Any = None) -> None:
        """Begin new episodes, in all rows of the batch or only `where` true: recurrent policies forget."""
        ...

    def seed(self, seed: int) -> None:
        """Begin the stream of sampled actions anew."""
        ...


def load_policy(run: Run, checkpoint: Checkpoint, device: str = "cpu") -> Policy:
    """The policy of a checkpoint."""
    return engine_of_run(run).load_policy(run, checkpoint, device)


def engine_of_run(run: Run) -> Any:
    """The engine that trained a run."""
    spec = stored(run.spec)
    require_packages(spec)
    return engine_of(spec)
