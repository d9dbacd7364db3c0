"""A network learns HackMatrix from the scripted policy (DAgger), and plays without any search.

    python -m benchmarks.hackmatrix_imitate --seconds 300 --out imitate        # on an accelerator
    python -m benchmarks.hackmatrix_imitate --envs 64 --steps 8 --seconds 60 --games 20 --out try

Imitation (Ross et al., 2011): games are played by the learner, most of them greedily, and by the script; in every
state the script says what it would do, and that is learnt by cross-entropy. Scores are of fixed evaluation seeds,
greedy and sampled. `OUT/imitate.json` holds the settings and all rows, `OUT/imitation.npz` the policy's weights,
from which `benchmarks.hackmatrix_improve` goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, vector_env
from operant.engines.jax.evaluation import evaluate_policy
from operant.engines.jax.learner import GREEDY, SAMPLED, Policy
from operant.engines.jax.learners import build_learner
from operant.engines.jax.optimizer import Optimizer, optimizer_hyper
from operant.engines.jax.platform import prepare_jax
from operant.engines.jax.ppo import Ppo
from operant.engines.jax.program import stacked
from operant.engines.jax.vector_env import VecEnvState
from operant.envs.hackmatrix.players.scripted import scripted_actions
from operant.report.stats import episode_interval
from operant.run.disk import write_text
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.optimizers import OptimizerSpec

FIRST_SEED = 1_000_000  # `meta.eval_seed`, where a spec does not say otherwise
TEACHER, SAMPLING = 0.25, 0.25  # shares of the games that the script plays, and in which actions are drawn


def spec_of(options: argparse.Namespace, precision: str, **of_algorithm: Any) -> Spec:
    """The game, and the networks of PPO on it; `of_algorithm` are more of PPO's settings."""
    algorithm = {"name": "ppo", "time_horizon": options.steps, "minibatch_size": options.envs * options.steps}
    algorithm |= of_algorithm
    optimizer = {"lr": options.lr, "lr_end_fraction": 1.0, "clip_each": True}
    net = {"hidden": options.hidden, "activation": "relu", "shared": False, "optimizer": optimizer}
    env = {"name": "HackMatrix-v0", "num_envs": options.envs, "max_frame": 10**10}
    meta = {"device": options.device, "storage": options.storage, "precision": precision}
    return Spec.model_validate({"env": env, "agent": {"algorithm": algorithm, "net": net}, "meta": meta})


def play(learner: Ppo, policy: Policy, now: VecEnvState, key: Array) -> tuple[VecEnvState, tuple[Array, Array, Array]]:
    """One step of every game: what was seen, what was legal, and what the script would have done."""
    env, count = learner.env, len(now.score)
    of_choice, of_env = jax.random.split(key)
    mask = jax.vmap(env.mask)(now.env_state)
    seen = now.observation.astype(learner.storage)
    label = scripted_actions(now.env_state)
    logits = distributions.mask_logits(learner.policy_output(policy, seen), mask)
    drawn = jax.random.categorical(of_choice, logits)
    place = jnp.arange(count) / count
    action = jnp.where(place < TEACHER, label, jnp.where(place < TEACHER + SAMPLING, drawn, logits.argmax(-1)))
    states, observation, _ = vector_env.jitted_advance(env)(now.env_state, action, jax.random.split(of_env, count))
    return now._replace(env_state=states, observation=observation), (seen, mask, label.astype(jnp.int32))


def imitate(learner: Ppo, settings: OptimizerSpec, steps: int, minibatches: int, epochs: int) -> Any:
    """The compiled program of one round: games go on, and what the script said in them is learnt."""
    optimizer, rates = Optimizer(settings), optimizer_hyper(settings)

    def loss(learnt: Any, batch: tuple[Array, Array, Array], policy: Policy) -> tuple[Array, Array]:
        seen, mask, label = batch
        output = learner.policy_output(policy._replace(params={**policy.params, **learnt}), seen)
        logp = jax.nn.log_softmax(distributions.mask_logits(output, mask))
        right = (logp.argmax(-1) == label).mean()
        return -jnp.take_along_axis(logp, label[:, None], 1).mean(), right

    def one(
        policy: Policy, opt_state: Any, now: VecEnvState, key: Array, share: Array
    ) -> tuple[Policy, Any, VecEnvState, Array]:
        of_play, of_order = jax.random.split(key)
        now, rows = lax.scan(partial(play, learner, policy), now, jax.random.split(of_play, steps))
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        number = len(rows[2])

        def descend(carry: tuple[Any, Any], index: Array) -> tuple[tuple[Any, Any], Array]:
            learnt, opt_state = carry
            grads, right = jax.grad(loss, has_aux=True)(learnt, jax.tree.map(lambda x: x[index], rows), policy)
            now_rates = rates._replace(lr=rates.lr * share)
            learnt, opt_state, _ = optimizer.step(learnt, grads, opt_state, now_rates, jnp.float32(1))
            return (learnt, opt_state), right

        orders = [jax.random.permutation(jax.random.fold_in(of_order, e), number) for e in range(epochs)]
        order = jnp.concatenate(orders).reshape(epochs * minibatches, -1)
        (learnt, opt_state), right = lax.scan(descend, ({"actor": policy.params["actor"]}, opt_state), order)
        return policy._replace(params={**policy.params, **learnt}), opt_state, now, right.mean()

    return optimizer, jax.jit(one)


@partial(jax.jit, static_argnums=0)
def _played(learner: Ppo, policies: Policy, hyper: Any, seeds: Array, mode: Array) -> Any:
    """Whole episodes [lanes, seeds], all seeds at once."""
    wanted = jnp.ones(seeds.shape, bool)
    return jax.vmap(lambda policy, numbers: evaluate_policy(learner, policy, numbers, seeds, wanted, mode))(
        policies, hyper
    )


class Record:
    """The rows so far, and the file that holds them."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        self.folder, self.games, self.name = options.out, options.games, name
        self.rows: list[dict[str, Any]] = []
        self.settings = {name: str(value) for name, value in vars(options).items() if name != "out"}
        self.begun = time.perf_counter()
        self.folder.mkdir(parents=True, exist_ok=True)

    def add(self, **row: Any) -> None:
        """Write and print a row."""
        self.rows.append({"seconds": round(time.perf_counter() - self.begun, 1), **row})
        print(json.dumps(self.rows[-1]), flush=True)
        found = {"device": jax.devices()[0].device_kind, "settings": self.settings, "rows": self.rows}
        write_text(self.folder / f"{self.name}.json", json.dumps(found, indent=1) + "\n")

    def scores(
        self, learner: Ppo, hyper: Any, policies: Policy, mode: int, first_seed: int = FIRST_SEED
    ) -> list[dict[str, Any]]:
        """Share of games won, stage and return of every lane."""
        seeds = np.arange(first_seed, first_seed + self.games, dtype=np.uint32)
        found = jax.device_get(_played(learner, policies, hyper, seeds, np.int32(mode)))
        return [
            {
                "won": episode_interval(found.facts["won"][lane].tolist()).as_dict(),
                "stage": float(found.facts["stage"][lane].mean()),
                "return": episode_interval(found.score[lane].tolist()).as_dict(),
                "length": float(found.length[lane].mean()),
            }
            for lane in range(len(found.score))
        ]

    def keep(self, name: str, actor: Any) -> None:
        """Store a policy's weights, in half precision."""
        leaves = jax.tree.leaves_with_path({"actor": actor})
        arrays = {jax.tree_util.keystr(path): np.asarray(leaf, np.float16) for path, leaf in leaves}
        np.savez(self.folder / f"{name}.npz", **arrays)  # pyright: ignore[reportArgumentType]


def learn_from_script(
    learner: Ppo, program: Any, options: argparse.Namespace, seed: int, look: Callable[[Policy, int, float], None]
) -> tuple[Policy, int]:
    """Imitation for `options.seconds` after the first round, which compiles; the policy and the states it has seen.

    `look` is called every so often with the policy, the states so far, and how often it agrees with the script.
    """
    optimizer, one = program
    policy = Policy(jax.tree.map(jnp.asarray, learner.init_params(Seeds(seed).rng("weights"))), None)
    opt_state, key = optimizer.init({"actor": policy.params["actor"]}), jax.random.key(seed)
    now = vector_env.reset(learner.env, jax.random.fold_in(key, 0), options.envs)
    begun = shown = time.perf_counter()
    rounds = 0
    while (spent := time.perf_counter() - begun) < options.seconds:
        share = jnp.float32(max(1 - spent / options.seconds, 0.01))
        rounds += 1
        policy, opt_state, now, right = one(policy, opt_state, now, jax.random.fold_in(key, rounds), share)
        right = float(right)
        if rounds == 1:
            begun = shown = time.perf_counter()
        if time.perf_counter() - shown > options.every:
            shown = time.perf_counter()
            look(policy, rounds * options.envs * options.steps, right)
    return policy, rounds * options.envs * options.steps


def arguments() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=32, help="of every game in a round of imitation")
    parser.add_argument("--minibatches", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3, help="at first; falls to a hundredth")
    parser.add_argument("--hidden", type=int, nargs="+", default=[1024, 512, 512])
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--every", type=float, default=45.0, help="seconds between evaluations")
    parser.add_argument("--seconds", type=float, default=280.0, help="of imitation, after the first round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--storage", default="bfloat16")
    parser.add_argument("--out", type=Path, default=Path("imitate"))
    return parser


def main() -> None:
    """Imitate, and score."""
    options = arguments().parse_args()
    spec = spec_of(options, options.storage)
    prepare_jax(spec)
    learner = build_learner(spec)
    assert isinstance(learner, Ppo)
    record = Record(options, "imitate")
    hyper = stacked([learner.hyper(spec)])

    def scores(policy: Policy, way: int) -> dict[str, Any]:
        return record.scores(learner, hyper, jax.tree.map(lambda x: x[None], policy), way)[0]

    def look(policy: Policy, states: int, agreement: float) -> None:
        record.add(phase="imitation", states=states, agreement=agreement, greedy=scores(policy, GREEDY))

    program = imitate(learner, spec.agent.net.optimizer, options.steps, options.minibatches, options.epochs)
    policy, states = learn_from_script(learner, program, options, options.seed, look)
    record.keep("imitation", policy.params["actor"])
    for name, way in (("greedy", GREEDY), ("sampled", SAMPLED)):
        record.add(phase="imitation, end", way=name, states=states, scores=scores(policy, way))


if __name__ == "__main__":
    main()
