"""What a session would cost: its update counts as text, and a second of real training as the measure."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from operant.engines.jax import nets
from operant.engines.jax.platform import prepare_jax
from operant.engines.jax.program import stacked
from operant.engines.jax.programs import build_program
from operant.envs.functional.find import steps_on_host
from operant.envs.vector.backend import choose_backend
from operant.run.expense import Estimate
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

PROBE_SECONDS = 1.0
BYTES_PER_ROW = 500
BYTES_PER_EPISODE = 230


def measure(spec: Spec) -> Estimate:
    """Compile the program of the whole trial, let it train for about a second, and scale up."""
    device = prepare_jax(spec)
    lanes = 1 if steps_on_host(spec.env) else spec.meta.max_session
    program = build_program(spec, lanes)
    hyper = stacked([program.learner.hyper(spec)] * lanes)
    states = program.placed(program.start([Seeds(spec.meta.seed + k) for k in range(lanes)]))
    sizes = nets.num_params(states.policy.params) // lanes, sum(leaf.nbytes for leaf in _plain(states)) // lanes
    begun = time.perf_counter()
    # Environments on the host are stepped without gradient steps at first, which are not what is to be measured.
    warm_up = program.learner.start // program.learner.frames if program.learner.env.on_host else 0
    for _ in range(warm_up + 1):
        states, _ = program.chunk(states, hyper, np.int32(1))
    jax.block_until_ready(states)
    compiled, frames, episodes = time.perf_counter() - begun, 0, 0.0
    begun = time.perf_counter()
    while time.perf_counter() - begun < PROBE_SECONDS:
        states, metrics = program.chunk(states, hyper, np.int32(1))
        found = program.fetch(metrics, 1)
        frames += program.learner.frames
        episodes += float(np.mean([row.metrics.episodes for (row,) in found]))
    rate = frames / (time.perf_counter() - begun)
    lines, updates = program.learner.update_counts()
    share = f"{lanes} sessions are lanes of one program" if lanes > 1 else "one session"
    if program.learner.env.on_host:
        stepped = choose_backend(spec.env, spec.env.num_envs).describe(spec.env.num_envs)
        lines.append(f"{stepped}, on the host; acting and learning are compiled")
    lines.append(f"{share} on {device}; compiling took {compiled:.1f} s")
    return Estimate(
        parameters=sizes[0],
        lines=lines,
        updates=updates,
        frames_per_second=rate,
        seconds_per_session=compiled + spec.env.max_frame / rate,
        disk_bytes=_disk(spec, sizes[1], episodes / max(frames, 1)),
    )


def _plain(states: object) -> list[jax.Array]:
    leaves = jax.tree.leaves(states)
    return [jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in leaves]


def _disk(spec: Spec, state: int, episodes_per_frame: float) -> int:
    """Bytes of one finished session: kept checkpoints, metric rows and episode records."""
    from operant.engines.jax.vector_env import RECORDED

    meta, frames = spec.meta, spec.env.max_frame
    recorded = episodes_per_frame * frames * min(1.0, RECORDED / spec.env.num_envs)
    episodes = recorded + meta.eval_episodes * frames / meta.eval_frequency + meta.final_episodes
    rows = frames / meta.log_frequency
    return int(state * (meta.keep_checkpoints + 1) + rows * BYTES_PER_ROW + episodes * BYTES_PER_EPISODE)
