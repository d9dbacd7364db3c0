"""What a whole session adds up to, by the learner's own account."""

from __future__ import annotations

from dataclasses import dataclass

from operant.engines.torch.frames import FrameReplay
from operant.engines.torch.replay import Replay
from operant.spec.schema import Spec
from operant.spec.settings.algorithms import DqnSpec
from operant.spec.settings.off_policy import TwinAlgorithm


@dataclass(frozen=True)
class Arithmetic:
    """The derived numbers of a session that `operant check` shows and scales by.

    `lines` tell a person how frames become gradient steps; `updates` are those steps in all;
    `warm_up` frames pass before the first of them; `growth` bytes will yet be added to a
    checkpoint written now.
    """

    lines: list[str]
    updates: int
    warm_up: int = 0
    growth: int = 0


def rollout_arithmetic(spec: Spec, steps: int) -> Arithmetic:
    """Updates of `steps` steps of each environment, with one gradient step each."""
    envs = spec.env.num_envs
    updates = -(-spec.env.max_frame // (envs * steps))
    line = (
        f"{updates:,} updates x {envs * steps:,} samples ({envs} envs x {steps} steps)"
        f" = {updates * envs * steps:,} frames, one gradient step each"
    )
    return Arithmetic([line], updates=updates)


def replay_arithmetic(spec: Spec, settings: DqnSpec | TwinAlgorithm, replay: Replay | FrameReplay) -> Arithmetic:
    """How frames become gradient steps, and how large the replay will be."""
    memory, frames = spec.agent.memory, spec.env.max_frame
    assert memory is not None, "the schema gives every off-policy algorithm a memory"
    steps = max(0, frames - settings.training_start) // settings.training_frequency * settings.training_iter
    ratio = settings.training_iter * memory.batch_size / settings.training_frequency
    lines = [
        f"{steps:,} gradient steps of {memory.batch_size} from frame {settings.training_start:,} on,"
        f" {settings.training_iter} every {settings.training_frequency} frames",
        f"each transition is learnt from about {ratio:g} times; replay of {memory.max_size:,} transitions",
    ]
    held = sum(array.nbytes for array in replay.state().values())
    if isinstance(replay, FrameReplay):
        lines.append(frame_cost(spec, replay))
        growth = int(replay.nbytes * min(1.0, frames / memory.max_size)) - held
    else:
        growth = int(held * (min(frames, memory.max_size) / max(replay.filled, 1) - 1))
    return Arithmetic(lines, updates=steps, warm_up=settings.training_start, growth=growth)


def frame_cost(spec: Spec, replay: FrameReplay) -> str:
    """Memory of a replay of images, and what its checkpoints cost."""
    size, kept = replay.nbytes / 1e9, spec.meta.keep_checkpoints + 1
    saves = spec.env.max_frame // spec.meta.save_frequency
    return (
        f"its frames are stored once: {size:.1f} GB of memory when full, and as much in every checkpoint"
        f" ({saves:,} are written, {kept} kept: up to {size * kept:.1f} GB of disk)"
    )
