"""PPO goes on from a network that imitates the script of HackMatrix, with several settings side by side.

    python -m benchmarks.hackmatrix_improve --weights imitate/imitation.npz --total 560 --out improve   # for a GPU
    python -m benchmarks.hackmatrix_improve --imitate-seconds 150 --seeds 0 1 --out improve

First only the value learns, from games of the imitated policy; then PPO, every lane of one program with settings of
its own. What is kept is chosen by the games won of selection seeds; the last rows are of the fixed evaluation seeds,
which nothing was chosen by. `OUT/improve.json` holds settings and rows, `OUT/best.npz` the best policy,
`OUT/best_0.npz` that of the first lane.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks import hackmatrix_imitate as imitation
from benchmarks.hackmatrix_imitate import FIRST_SEED, Record, imitate, learn_from_script, spec_of
from operant.engines.jax import losses, nets
from operant.engines.jax.chunks import ChunkRow
from operant.engines.jax.devices import Axis
from operant.engines.jax.learner import GREEDY, SAMPLED, LinearSchedule, OwnSchedule, Policy, TrainState, build_schedule
from operant.engines.jax.learners import build_learner
from operant.engines.jax.normalize import RunningMeanStd
from operant.engines.jax.on_policy import RolloutState
from operant.engines.jax.optimizer import OptimizerHyper, optimizer_hyper
from operant.engines.jax.platform import prepare_jax
from operant.engines.jax.ppo import Ppo, Samples
from operant.engines.jax.program import Program, lane_of, stacked
from operant.engines.jax.vector_env import Step, VecEnvState
from operant.envs.functional.find import find_functional
from operant.envs.hackmatrix.constants import VICTORY_PAY
from operant.envs.hackmatrix.players.scripted import scripted_actions
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

SELECTION_SEED = 2_000_000
REWARD_SCALE = 0.01  # a victory is worth 5 and more to the critic
WIN = 5.0  # what a victory is worth where nothing else counts
LANES = (
    "lr=3e-5,gamma=0.999",
    "lr=1e-4,gamma=0.999",
    "lr=3e-4,gamma=0.999",
    "lr=1e-4,gamma=0.997",
    "lr=1e-4,gamma=0.999,entropy=0.001",
    "lr=1e-4,gamma=0.999,won=1",
    "lr=3e-4,gamma=0.999,won=1,entropy=0.001",
    "lr=3e-4,gamma=0.999,script=0.1",
)


class Lane(NamedTuple):
    """The settings of a lane; with `won` only victories are rewarded, `script` weighs the script's actions.

    Every step costs `step`.
    """

    lr: float = 1e-4
    critic_lr: float = 3e-4
    entropy: float = 0.0
    gamma: float = 0.999
    lam: float = 0.95
    clip: float = 0.1
    won: float = 0.0
    script: float = 0.0
    step: float = 0.0

    @classmethod
    def of(cls, text: str) -> Lane:
        """From `name=number,name=number`."""
        return cls(**{name: float(number) for name, number in (part.split("=") for part in text.split(",") if part)})


class Numbers(NamedTuple):
    """PPO's traced numbers, and those of this script."""

    optimizer: OptimizerHyper
    gamma: Array
    lam: Array
    clip: LinearSchedule | OwnSchedule
    entropy: LinearSchedule | OwnSchedule
    value_coef: Array
    value_clip: Array
    target_kl: Array
    budget: Array
    won: Array
    script: Array
    step: Array

    def at(self, share: float, critic_share: float, script_share: float) -> Numbers:
        """With these shares of the learning rates and of the weight of the script."""
        before = self.optimizer
        optimizer = before._replace(lr=before.lr * share, critic_lr=before.critic_lr * critic_share)
        return self._replace(optimizer=optimizer, script=self.script * script_share)


class Improver(Ppo):
    """PPO with rewards scaled by a constant, and the script's action beside each that was played: [..., 2].

    Where no lane weighs the script it is not asked: to ask costs more than the rest of a step.
    """

    script_weighs = False

    def numbers(self, spec: Spec, lane: Lane) -> Numbers:
        """Those of a lane."""
        optimizer = optimizer_hyper(spec.agent.net.optimizer)._replace(
            lr=jnp.float32(lane.lr), critic_lr=jnp.float32(lane.critic_lr)
        )
        ours = {name: jnp.float32(getattr(lane, name)) for name in ("gamma", "lam", "won", "script", "step")}
        schedules = {"clip": build_schedule(lane.clip), "entropy": build_schedule(lane.entropy)}
        values: dict[str, Any] = {**self.hyper(spec)._asdict(), **ours, **schedules, "optimizer": optimizer}
        return Numbers(**values)

    def select_action(self, policy: Policy, now: VecEnvState, noise: Array) -> tuple[Array, Array, Array | None]:
        action, env_action, mask = super().select_action(policy, now, noise)
        of_script = scripted_actions(now.env_state) if self.script_weighs else action
        return jnp.stack([action, of_script], -1), env_action, mask

    def log_prob(self, output: Array, mask: Array | None, action: Array, log_std: Array | None) -> tuple[Array, Array]:
        return super().log_prob(output, mask, action[..., 0], log_std)

    def make_samples(
        self, state: TrainState, steps: Step, *rest: Any
    ) -> tuple[Samples, RolloutState, RunningMeanStd, RunningMeanStd | None]:
        """As PPO's, but a game that the limit of steps ends is lost: with a value beyond it, to linger would pay."""
        return super().make_samples(state, steps._replace(terminated=steps.terminated | steps.truncated), *rest)

    def rewards(self, state: TrainState, steps: Step, hyper: Any, axis: Axis) -> tuple[Array, Array, RunningMeanStd]:
        victory = (steps.reward > VICTORY_PAY / 2) * WIN
        reward = jnp.where(hyper.won > 0, victory, steps.reward * REWARD_SCALE) - hyper.step
        return reward, state.rollout.discounted_return, state.learner.return_stats

    def loss(
        self, params: Any, obs_stats: RunningMeanStd | None, batch: Samples, hyper: Any, frame: Array, axis: Axis
    ) -> tuple[Array, Array]:
        """PPO's loss, and the cross-entropy of the script's actions."""
        clip = hyper.clip.at(frame)
        output, value = nets.forward(self.net, params, self.normalize_obs(obs_stats, batch.observation), self.dtype)
        logp, entropy = self.log_prob(output, batch.mask, batch.action, None)
        of_script = super().log_prob(output, batch.mask, batch.action[..., 1], None)[0].mean()
        policy_loss = losses.clipped_surrogate(logp, batch.logp, losses.standardize(batch.advantage, axis), clip)
        value_loss, bonus = losses.value_loss(value, batch.target), entropy.mean()
        kl, clipped = losses.approximate_kl(logp, batch.logp), losses.clip_fraction(logp, batch.logp, clip)
        total = policy_loss + hyper.value_coef * value_loss - hyper.entropy.at(frame) * bonus
        return total - hyper.script * of_script, jnp.stack([policy_loss, value_loss, bonus, kl, clipped])


class Reports:
    """What the rounds since the last row reported."""

    def __init__(self) -> None:
        self.rounds: list[list[ChunkRow]] = []  # of each lane

    def of_lane(self, lane: int, last: int = 0) -> dict[str, float]:
        """Means of all or the last rounds, and the sampled games that ended: won those of 64 environments only."""
        rounds = [each[lane].metrics for each in self.rounds[-last:]]
        found = {name: float(np.mean([each.means[name] for each in rounds])) for name in rounds[0].means}
        episodes = max(1.0, float(sum(each.episodes for each in rounds)))
        won = [episode.parts["won"] for each in self.rounds[-last:] for episode in each[lane].episodes]
        over = max(1, len(won))
        found |= {"won": sum(won) / over, "of": over, "return": float(sum(each.score for each in rounds)) / episodes}
        return found | {"length": float(sum(each.length for each in rounds)) / episodes}


class Lanes:
    """The lanes of one run: their program, their states, and the rows."""

    def __init__(self, learner: Improver, spec: Spec, options: argparse.Namespace, record: Record) -> None:
        self.learner, self.options, self.record = learner, options, record
        self.lanes = [Lane.of(text) for text in options.lanes]
        learner.script_weighs = any(lane.script for lane in self.lanes)
        self.program = Program(learner, len(self.lanes))
        self.numbers: Numbers = stacked([learner.numbers(spec, lane) for lane in self.lanes])
        self.best: list[tuple[float, Any]] = [(-1.0, None)] * len(self.lanes)
        self.evaluating = 0.0
        self.round = 0

    def evaluate(self, actors: Any, first_seed: int) -> list[dict[str, Any]]:
        """Scores of the policies of all lanes, greedy and sampled."""
        begun = time.perf_counter()
        policy = Policy({"trunk": [], "actor": actors}, None)
        found = [self.record.scores(self.learner, self.numbers, policy, way, first_seed) for way in (GREEDY, SAMPLED)]
        self.evaluating = time.perf_counter() - begun
        return [{"greedy": greedy, "sampled": sampled} for greedy, sampled in zip(*found, strict=True)]

    def begin(self, actors: list[Any]) -> TrainState:
        """States whose policies are these, in turn; the critics are fresh."""
        weights = [
            self.learner.init_params(Seeds(lane).rng("weights")) | {"actor": actors[lane % len(actors)]}
            for lane in range(len(self.lanes))
        ]
        keys = jax.vmap(jax.random.key)(np.arange(len(self.lanes), dtype=np.uint32))
        return self.program.init(keys, jax.tree.map(lambda *leaves: np.stack(leaves), *weights))

    def advance(self, states: TrainState, numbers: Numbers, reports: Reports) -> TrainState:
        """One round of all lanes."""
        states, report = self.program.chunk(states, numbers, np.int32(1))
        reports.rounds.append([row for (row,) in self.program.fetch(report, 1)])
        self.round += 1
        return states

    def row(self, phase: str, states: TrainState, reports: Reports) -> None:
        """Evaluate on the selection seeds, write a row, and keep what is the best of each lane."""
        actors = states.policy.params["actor"]
        scores = self.evaluate(actors, SELECTION_SEED)
        for lane, score in enumerate(scores):
            if (won := score["greedy"]["won"]["point"]) > self.best[lane][0]:
                half = jax.tree.map(lambda x: np.asarray(x, np.float16), jax.device_get(lane_of(actors, lane)))
                self.best[lane] = (won, half)
        best = max(self.best, key=lambda each: each[0])
        self.record.keep("best", best[1])
        rows = [
            {"lane": text, **scores[lane], "training": reports.of_lane(lane)}
            for lane, text in enumerate(self.options.lanes)
        ]
        states_played = self.round * self.learner.frames
        self.record.add(phase=phase, seeds=SELECTION_SEED, round=self.round, states=states_played, lanes=rows)

    def warm_up(self, states: TrainState) -> TrainState:
        """Only the critic learns: the learning rate of the policy is 0, while its optimizer gathers its moments."""
        reports, begun = Reports(), time.perf_counter()
        numbers = self.numbers.at(0.0, self.options.warm_factor, 0.0)
        for number in range(self.options.warm_rounds):
            states = self.advance(states, numbers, reports)
            if number % 10 == 0:
                latest = [reports.of_lane(lane, last=1) for lane in range(len(self.lanes))]
                self.record.add(phase="warm-up", round=self.round, lanes=latest)
            begun = begun if number else time.perf_counter()  # the first round compiles
            if time.perf_counter() - begun > self.options.warm_seconds:
                break
        self.row("warm-up, end", states, reports)
        return states

    def improve(self, states: TrainState, end: float) -> None:
        """PPO until the time `end`; learning rates fall to a tenth, the script's weight to 0 at half time."""
        begun = shown = time.perf_counter()
        reports = Reports()
        while (now := time.perf_counter()) < (stop := end - 2.2 * self.evaluating - 5):
            done = (now - begun) / (stop - begun)
            share = 1 - 0.9 * done
            states = self.advance(states, self.numbers.at(share, share, max(0.0, 1 - 2 * done)), reports)
            if time.perf_counter() - shown > self.options.every:
                self.row("improve", states, reports)
                shown, reports = time.perf_counter(), Reports()
        if reports.rounds:
            self.row("improve, end", states, reports)

    def close(self) -> None:
        """Score the best of every lane, as it is stored, on the fixed evaluation seeds."""
        for lane, (_, half) in enumerate(self.best):
            self.record.keep(f"best_{lane}", half)
        scores = self.evaluate(stacked_actors([half for _, half in self.best]), FIRST_SEED)
        chosen = max(range(len(self.lanes)), key=lambda lane: self.best[lane][0])
        rows = [
            {"lane": text, "selection": self.best[lane][0], **scores[lane]}
            for lane, text in enumerate(self.options.lanes)
        ]
        self.record.add(phase="end", seeds=FIRST_SEED, lanes=rows)
        self.record.add(phase="best", seeds=FIRST_SEED, **rows[chosen])


def stacked_actors(actors: list[Any]) -> Any:
    """Policies of all lanes in single precision."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, jnp.float32) for leaf in leaves]), *actors)


def stored_actor(learner: Ppo, path: Path) -> Any:
    """A policy that `Record.keep` stored."""
    template = {"actor": learner.init_params(np.random.default_rng(0))["actor"]}
    with np.load(path) as arrays:
        found = jax.tree.map_with_path(lambda at, _: arrays[jax.tree_util.keystr(at)].astype(np.float32), template)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(template), strict=True):
        assert mine.shape == theirs.shape, f"{path} holds {mine.shape} where the network has {theirs.shape}"
    return found["actor"]


def imitated(options: argparse.Namespace, record: Record) -> list[Any]:
    """Policies that imitate the script, one for each seed; each is stored."""
    own = imitation.arguments().parse_args([])
    shared = {name: getattr(options, name) for name in ("envs", "hidden", "device", "storage", "games", "out")}
    own = argparse.Namespace(**vars(own) | shared | {"seconds": options.imitate_seconds, "every": float("inf")})
    spec = spec_of(own, own.storage)
    learner = build_learner(spec)
    assert isinstance(learner, Ppo)
    program = imitate(learner, spec.agent.net.optimizer, own.steps, own.minibatches, own.epochs)
    actors = []
    for seed in options.seeds:
        policy, states = learn_from_script(learner, program, own, seed, lambda *_: None)
        actors.append(jax.device_get(policy.params["actor"]))
        record.keep(f"imitation_{seed}", actors[-1])
        record.add(phase="imitation", seed=seed, states=states)
    return actors


def arguments() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, nargs="+", help="of imitated policies")
    parser.add_argument("--imitate-seconds", type=float, help="of imitation for each seed, where no weights are given")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of imitation")
    parser.add_argument(
        "--start", choices=("best", "each"), default="best", help="lanes begin with the best, or in turn"
    )
    parser.add_argument("--lanes", nargs="+", default=LANES, help="settings: " + ", ".join(Lane._fields))
    parser.add_argument("--envs", type=int, default=8192, help="of each lane")
    parser.add_argument("--steps", type=int, default=32, help="of every game in a round")
    parser.add_argument("--minibatches", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--warm-rounds", type=int, default=30, help="in which only the critic learns")
    parser.add_argument("--warm-seconds", type=float, default=60.0, help="of those at most, after the first")
    parser.add_argument("--warm-factor", type=float, default=3.0, help="of the critic's learning rate in them")
    parser.add_argument("--seconds", type=float, default=1e9, help="of PPO")
    parser.add_argument(
        "--total", type=float, default=560.0, help="seconds from the start, the last evaluation included"
    )
    parser.add_argument("--every", type=float, default=60.0, help="seconds between evaluations")
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--hidden", type=int, nargs="+", default=[1024, 512, 512])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--storage", default="bfloat16")
    parser.add_argument("--precision", default="float32", help="of PPO's arithmetic; bfloat16 rounds values and logits")
    parser.add_argument("--out", type=Path, default=Path("improve"))
    return parser


def main() -> None:
    """Imitate or read weights, improve, and score."""
    parser = arguments()
    options = parser.parse_args()
    if (options.weights is None) == (options.imitate_seconds is None):
        parser.error("give --weights or --imitate-seconds")
    options.lr = 1e-4
    end = time.perf_counter() + options.total
    size = options.envs * options.steps // options.minibatches
    spec = spec_of(options, options.precision, minibatch_size=size, training_epoch=options.epochs)
    prepare_jax(spec)
    learner = Improver(spec, find_functional(spec.env))
    record = Record(options, "improve")
    lanes = Lanes(learner, spec, options, record)
    if options.weights is None:
        actors = imitated(options, record)
    else:
        actors = [stored_actor(learner, path) for path in options.weights]
    number = len(lanes.lanes)
    assert len(actors) <= number, "no more imitated policies than lanes"
    scores = lanes.evaluate(stacked_actors([actors[lane % len(actors)] for lane in range(number)]), SELECTION_SEED)
    record.add(phase="begin", seeds=SELECTION_SEED, policies=scores[: len(actors)])
    if options.start == "best":
        actors = [actors[max(range(len(actors)), key=lambda at: scores[at]["greedy"]["won"]["point"])]]
    states = lanes.warm_up(lanes.begin(actors))
    lanes.improve(states, min(end, time.perf_counter() + options.seconds))
    lanes.close()


if __name__ == "__main__":
    main()
