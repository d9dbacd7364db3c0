"""The deep engine: PyTorch learners on Gymnasium environments, one readable file per algorithm.

This module is the engine's whole face. It imports nothing heavy: `validate` needs Gymnasium and
the others need torch, each from inside its function.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.engines.deep.cost import Estimate
    from operant.run.checkpoint import Checkpoint
    from operant.run.episode import Episode
    from operant.run.run import Run
    from operant.spec.schema import Spec

SQUASHES = ("sac", "td3", "crossq")  # their continuous actions lie between the environment's bounds


def validate(spec: Spec) -> None:
    """Refuse, before any work, what this machine lacks, and an environment that is unknown or does not fit."""
    from gymnasium.spaces import Box, Discrete

    from operant.engines.deep.pixels import refuse_misfit
    from operant.envs.check import check_env
    from operant.envs.find import plays_natively
    from operant.envs.gym import observation_shape
    from operant.envs.worlds import offers_mask

    if spec.meta.device == "cuda":
        from operant.engines.deep.learners import choose_device

        choose_device(spec)
    if spec.meta.compile or spec.meta.precision != "float32":
        from operant.engines.deep.accelerate import check_machine

        check_machine(spec.meta)
    env = check_env(spec.env)
    space, name = env.action_space, spec.agent.algorithm.name
    is_limited = env.spec is not None and env.spec.max_episode_steps is not None
    is_masked = not spec.agent.algorithm.TAKES_MASKS and isinstance(space, Discrete) and offers_mask(env)
    shape = observation_shape(env)
    env.close()
    refuse_misfit(spec, shape)
    if is_masked:
        raise UsageError(
            f"agent.algorithm: {spec.env.name} says which actions are legal, and {name} does not listen",
            remedy="-s agent.algorithm.name=ppo, which does; so do a2c, dqn, reinforce and sarsa",
        )
    if not isinstance(space, Discrete | Box):
        raise UsageError(f"env.name: {spec.env.name} has actions {space}, which no algorithm here supports")
    if name in ("dqn", "sarsa") and not isinstance(space, Discrete):
        raise UsageError(
            f"agent.algorithm: {name} chooses among discrete actions, but {spec.env.name} has actions {space}",
            remedy="-s agent.algorithm.name=ppo, or an environment with discrete actions",
        )
    if name == "reinforce" and plays_natively(spec.env):
        raise UsageError(
            f"agent.algorithm: reinforce lets environments wait for each other, which {spec.env.name} cannot",
            remedy="-s agent.algorithm.name=a2c",
        )
    if name == "reinforce" and not is_limited:
        raise UsageError(
            f"env.max_t: reinforce learns from whole episodes, but those of {spec.env.name} may never end",
            remedy="-s env.max_t=1000",
        )
    if name == "td3" and not isinstance(space, Box):
        raise UsageError(
            f"agent.algorithm: td3 chooses real actions, but {spec.env.name} has actions {space}",
            remedy="-s agent.algorithm.name=sac, or an environment with continuous actions",
        )
    if name in SQUASHES and isinstance(space, Box) and not space.is_bounded():
        raise UsageError(
            f"agent.algorithm: {name} needs bounds to act within, but {spec.env.name} has actions {space}",
            remedy="-s agent.algorithm.name=ppo, or an environment with bounded actions",
        )
    if name == "crossq" and spec.agent.net.READS_IMAGES:
        raise UsageError(
            f"agent.net.type: crossq renormalises perceptrons, and {spec.agent.net.type} is none",
            remedy="-s agent.algorithm.name=sac, which reads images",
        )
    if name in SQUASHES and isinstance(space, Box) and spec.agent.net.READS_IMAGES:
        raise UsageError(
            f"agent.net.type: {name} reads images only where actions are discrete, but {spec.env.name} has {space}",
            remedy="-s agent.algorithm.name=ppo",
        )


def train(run: Run, until: int | None = None) -> None:
    """Train one session until `until` frames (the spec's whole budget by default), from its newest checkpoint."""
    from operant.engines.deep.learners import build_learner, prepare_torch
    from operant.engines.deep.loop import run_session
    from operant.engines.deep.parallel import led
    from operant.envs.vectorise import choose
    from operant.spec.schema import Spec

    spec = Spec.model_validate(run.spec)
    device = prepare_torch(spec, run.threads)
    with run.session(until) as session:
        session.run.record(vectorization=str(choose(spec.env, spec.env.num_envs)))
        start = session.latest.path if session.latest else None
        with led(session.run, spec, start):
            run_session(session, build_learner(spec, session.seeds, device))


def evaluate(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, greedy: bool = True) -> Iterator[Episode]:
    """Play a checkpoint's policy once for each of the seeds `seed`, `seed + 1`, ..."""
    from operant.engines.deep.learners import load_actor
    from operant.engines.deep.loop import as_episode
    from operant.engines.deep.playing import play
    from operant.run.seeding import Seeds
    from operant.spec.schema import Spec

    spec = Spec.model_validate(run.spec)
    actor = load_actor(spec, checkpoint.path)
    rng = Seeds(seed).rng("sampled-play")
    act = actor.greedy if greedy else lambda obs, mask, begun: actor.sample(obs, rng, mask, begun)
    for ended in play(spec.env, act, episodes, seed):
        yield as_episode(ended, spec.env.name, "eval", checkpoint.at)


def estimate(spec: Spec) -> Estimate:
    """What a session would cost, measured by a second of real training in memory."""
    from operant.engines.deep.cost import measure

    return measure(spec)


def watch(run: Run, checkpoint: Checkpoint, episodes: int, seed: int, sink: str | Path) -> list[Episode]:
    """Show a checkpoint's policy at play in a window (`sink` is "window"), or as a .gif or .mp4 file."""
    from operant.engines.deep.film import show

    return show(run, checkpoint, episodes, seed, sink)
