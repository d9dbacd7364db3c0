"""How many of HackMatrix's fixed seeds can be won: random play, the scripted policy, and a planner with the simulator.

    python -m benchmarks.hackmatrix_ceiling --players random scripted --games 64 --out ceiling
    python -m benchmarks.hackmatrix_ceiling --players scripted planner --seconds 500 --out ceiling   # on an accelerator
    python -m benchmarks.hackmatrix_ceiling --players benchmarks/results/hackmatrix_policy.npz       # a stored policy
    python -m benchmarks.hackmatrix_ceiling --explain ceiling                  # what the won games have in common

`FOLDER/ceiling.json` holds for every player its settings, one row for each game and the means with 95 % intervals;
`FOLDER/won_PLAYER.json` are the won games as replays, for `operant hackmatrix replay`. Both are written again
while games go on, so that a run that is cut short has what it played; games that a limit cut off are rows whose `ended`
is "unfinished", and count as not won. A player whose name ends in `_without_undo` may not use that program; a file of
weights is a network of `hackmatrix_imitate` and `hackmatrix_improve`, which takes its likeliest action.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from benchmarks import hackmatrix_imitate as imitation
from benchmarks.hackmatrix_improve import stored_actor
from benchmarks.hackmatrix_won import explain
from operant.engines.jax import learner as learners
from operant.engines.jax.distributions import mask_logits
from operant.engines.jax.ppo import Ppo
from operant.envs.functional.find import find_functional
from operant.envs.hackmatrix.players.planner import Planning, plan
from operant.envs.hackmatrix.players.scripted import Weights, scripted_actions
from operant.envs.hackmatrix.rules.legality import action_mask
from operant.envs.hackmatrix.rules.simulation import new_states, step_games
from operant.envs.hackmatrix.rules.state import State, unpack
from operant.envs.hackmatrix.viewer.replay import Replay, dump_replays
from operant.report.stats import episode_interval
from operant.run.disk import write_text

FIRST_SEED = 1_000_000  # `meta.eval_seed`, where a spec does not say otherwise
SAVE_EVERY = 20.0
WON, UNFINISHED = "won", "unfinished"
PLAYERS = ("random", "scripted", "scripted_without_undo", "planner", "planner_without_undo")
Policy = Callable[[State, Array], Array]


@dataclass
class Played:
    """One game so far."""

    seed: int
    actions: list[int] = field(default_factory=list)
    total: float = 0.0
    stage: int = 1
    ended: str = UNFINISHED

    def row(self) -> dict[str, Any]:
        """What the results keep of it."""
        return {
            "seed": self.seed,
            "ended": self.ended,
            "stage": self.stage,
            "return": round(self.total, 3),
            "steps": len(self.actions),
        }


def policy_of(player: str, planning: Planning) -> Policy:
    """The compiled policy of a player, from games and a key to actions."""
    weights = Weights(undo=0.0) if player.endswith("_without_undo") else Weights()
    if player == "random":
        return jax.jit(_random_actions)
    if player.endswith(".npz"):
        return jax.jit(network_policy(Path(player)))
    if player.startswith("scripted"):
        return lambda states, key: _scripted(states, weights)
    chosen = Planning(planning.candidates, planning.rollouts, planning.horizon, planning.trust, weights)
    planned = jax.jit(lambda states, actions, key: plan(states, actions, key, chosen)[0])
    return lambda states, key: planned(states, _scripted(states, weights), key)


def network_policy(weights: Path) -> Policy:
    """The likeliest legal action by a stored network."""
    options = imitation.arguments().parse_args([])
    spec = imitation.spec_of(options, "float32")
    learner = Ppo(spec, find_functional(spec.env))
    policy = learners.Policy({"trunk": [], "actor": stored_actor(learner, weights)}, None)

    def likeliest(states: State, key: Array) -> Array:
        del key
        logits = learner.policy_output(policy, jax.vmap(learner.env.observe)(states).astype(learner.storage))
        return mask_logits(logits, jax.vmap(learner.env.mask)(states)).argmax(-1).astype(jnp.int32)

    return likeliest


def _random_actions(states: State, key: Array) -> Array:
    mask = action_mask(unpack(states.words.T)).T
    return jnp.where(mask, jax.random.uniform(key, mask.shape), -1.0).argmax(1).astype(jnp.int32)


def _replaced(states: State, seeds: Array, fresh: Array) -> State:
    """New games of the seeds on the places that are fresh."""

    def chosen(new: Array, old: Array) -> Array:
        return jnp.where(fresh.reshape(-1, *(1 for _ in old.shape[1:])), new, old)

    return jax.tree.map(chosen, new_states(seeds), states)


# Compiled once for all players
_scripted = jax.jit(scripted_actions)
_step = jax.jit(step_games, donate_argnums=0)
_fill_places = jax.jit(_replaced, donate_argnums=0)


class Table:
    """Games of a player side by side: a place that is free takes the next seed."""

    def __init__(self, policy: Policy, seeds: range, places: int) -> None:
        self.policy, self.waiting = policy, list(reversed(seeds))
        self.games: list[Played] = []
        self.places: list[Played | None] = [None] * places
        self._states: State = jax.jit(new_states)(jnp.zeros(places, jnp.uint32))
        self.waves = 0

    def fill(self) -> bool:
        """Fill free places with waiting seeds; whether anybody plays."""
        fresh = np.zeros(len(self.places), bool)
        seeds = np.zeros(len(self.places), np.uint32)
        for place, game in enumerate(self.places):
            if game is None and self.waiting:
                game = self.places[place] = Played(self.waiting.pop())
                self.games.append(game)
                fresh[place], seeds[place] = True, game.seed
        if fresh.any():
            self._states = _fill_places(self._states, seeds, fresh)
        return any(self.places)

    def play(self, key: Array) -> None:
        """One action of each game."""
        actions = self.policy(self._states, key)
        self._states, stepped = _step(self._states, actions)
        chosen, step = jax.device_get((actions, stepped))
        self.waves += 1
        for place, game in enumerate(self.places):
            if game is None:
                continue
            game.actions.append(int(chosen[place]))
            game.total += float(step.reward[place])
            game.stage = int(step.stage[place])
            if step.terminated[place] or step.truncated[place]:
                lost = "time up" if step.truncated[place] else "died"
                game.ended = WON if step.won[place] else lost
                self.places[place] = None


def summary(games: list[Played], seconds: float) -> dict[str, Any]:
    """The results of a player: means with intervals, and a row for each game."""
    finished = [game for game in games if game.ended != UNFINISHED]
    found: dict[str, Any] = {
        "games": len(games),
        "won": sum(game.ended == WON for game in games),
        "unfinished": len(games) - len(finished),
        "seconds": round(seconds, 1),
    }
    if finished:
        found |= {
            "win_rate": episode_interval([float(game.ended == WON) for game in games]).as_dict(),
            "stage": episode_interval([game.stage for game in games]).as_dict(),
            "return": episode_interval([game.total for game in finished]).as_dict(),
            "steps": episode_interval([len(game.actions) for game in finished]).as_dict(),
        }
    return found | {"episodes": [game.row() for game in sorted(games, key=lambda game: game.seed)]}


def save(folder: Path, player: str, settings: dict[str, Any], table: Table, seconds: float) -> None:
    """Write the results of a player beside those of the others, and its won games."""
    path = folder / "ceiling.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[player] = {**settings, **summary(table.games, seconds)}
    write_text(path, json.dumps(results, indent=1) + "\n")
    won = [Replay.of(game.seed, game.actions) for game in table.games if game.ended == WON]
    write_text(folder / f"won_{Path(player).stem}.json", dump_replays(won))


def play_games(table: Table, seconds: float, seed: int, saved: Callable[[float], None]) -> float:
    """Play until all games are over or the time is; `saved` is called now and then, and at the end."""
    start = last = time.perf_counter()
    key = jax.random.key(seed)
    while table.fill() and time.perf_counter() - start < seconds:
        table.play(jax.random.fold_in(key, table.waves))
        now = time.perf_counter()
        if now - last > SAVE_EVERY:
            last = now
            saved(now - start)
            over = [game for game in table.games if game.ended != UNFINISHED]
            won = sum(game.ended == WON for game in over)
            print(f"{now - start:7.1f} s  decisions {table.waves}  games over {len(over)}  won {won}", flush=True)
    took = time.perf_counter() - start
    saved(took)
    return took


def main() -> None:
    """Let the players play one after the other."""
    options = _options()
    if options.explain:
        print(json.dumps(explain(options.explain), indent=1))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    planning = Planning(options.candidates, options.rollouts, options.horizon)
    begun = time.perf_counter()
    print(json.dumps({"device": jax.devices()[0].device_kind, "jax": jax.__version__}), flush=True)
    for player in options.players:
        planned = player.startswith("planner")
        settings: dict[str, Any] = {"device": jax.devices()[0].device_kind, "first_seed": options.first_seed}
        settings |= {"candidates": planning.candidates, "rollouts": planning.rollouts} if planned else {}
        settings |= {"horizon": planning.horizon} if planned else {}
        seeds = range(options.first_seed, options.first_seed + options.games)
        table = Table(policy_of(player, planning), seeds, min(options.places if planned else 1024, options.games))
        left = options.seconds - (time.perf_counter() - begun)
        print(f"{player}: {options.games} games, {left:.0f} s left", flush=True)

        def saved(seconds: float, player: str = player, settings: dict = settings, table: Table = table) -> None:
            save(options.out, player, settings, table, seconds)

        took = play_games(table, left, options.seed, saved)
        short = {name: value for name, value in summary(table.games, took).items() if name != "episodes"}
        print(json.dumps({player: short}), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", nargs="+", type=_player, default=["random", "scripted", "planner"])
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seed", type=int, default=0, help="of the players' own draws")
    parser.add_argument("--seconds", type=float, default=500.0, help="for all players together")
    parser.add_argument("--places", type=int, default=256, help="games that the planner plays side by side")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--rollouts", type=int, default=16, help="of each candidate in the first round")
    parser.add_argument("--horizon", type=int, default=64, help="steps of a rollout")
    parser.add_argument("--out", type=Path, default=Path("ceiling"))
    parser.add_argument("--explain", type=Path, metavar="FOLDER", help="tell what won in stored games, and play none")
    return parser.parse_args()


def _player(name: str) -> str:
    if name not in PLAYERS and not Path(name).is_file():
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PLAYERS)}, and no file of weights")
    return name


if __name__ == "__main__":
    main()
