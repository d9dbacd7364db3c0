"""Runs of research agents as they lie on disk: several tasks, turns with tools, faults, errors, and a tree search.

`write_runs(root)` makes three: `grpo_research` (three seeds, done), `search_blotto` (one tree) and `grpo_titanic`
(still being written). All numbers come from fixed seeds, so that pictures and tests see the same ones.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.run.checkpoint import publish
from operant.run.episode import Episode, Turn
from operant.run.metrics import JsonLines
from operant.run.progress import Progress

VERSIONS = range(0, 60, 4)
GROUP = 4
EVALUATED_EVERY = 12
TURNS = 6


@dataclass(frozen=True)
class World:
    """A task in short: what it asks, what a weak and a strong policy write, and the scale of its scores."""

    name: str
    prompt: str
    file: str
    weak: str
    strong: str
    baseline: float
    ceiling: float


BLOTTO = World(
    "blotto",
    "You command 120 soldiers on 6 fields against a pool of opponents. Write plan.txt: six whole numbers that sum to"
    " 120. `validate` plays 200 battles (2 calls); `submit` ends the task. The hidden opponents decide your score.",
    "plan.txt",
    "20 20 20 20 20 20",
    "0 0 30 30 30 30",
    0.0,
    0.248,
)
DILEMMA = World(
    "prisoners_dilemma",
    "Write strategy.py with `def move(mine, theirs)` that returns 'C' or 'D'. It plays 100 rounds against each of"
    " eleven strategies. Your score is the mean payoff per round against hidden seeds.",
    "strategy.py",
    "def move(mine, theirs):\n    return 'C'",
    "def move(mine, theirs):\n    if len(mine) >= 95 or theirs[:2] == ['D', 'D']:\n        return 'D'\n"
    "    return theirs[-1] if theirs else 'C'",
    2.25,
    2.625,
)
TITANIC = World(
    "titanic",
    "train.csv has 712 passengers with `Survived`; test.csv has 179 without. Write submission.csv with columns"
    " PassengerId,Survived. `validate` scores half of the rows; the other half decides.",
    "submission.csv",
    "PassengerId,Survived\n" + "\n".join(f"{number},0" for number in range(713, 760)),
    "PassengerId,Survived\n" + "\n".join(f"{number},{number * 7 % 3 // 2}" for number in range(713, 760)),
    0.616,
    0.86,
)
WORLDS = (BLOTTO, DILEMMA, TITANIC)
LISTING = "total 24\n" + "\n".join(
    f"-rw-r--r-- 1 agent agent {size:>6} {name}"
    for size, name in (
        (812, "README.md"),
        (61194, "train.csv"),
        (28629, "test.csv"),
        (340, "baseline.py"),
        (77, "plan.txt"),
    )
)
TRACEBACK = """Traceback (most recent call last):
  File "fit.py", line 31, in <module>
    model.fit(features, labels)
  File "fit.py", line 18, in fit
    weights -= rate * features.T @ (sigmoid(features @ weights) - labels) / len(labels)
ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0 (size 7 is different from 8)"""


def rollout(world: World, skill: float, rng: random.Random) -> tuple[tuple[Turn, ...], float | None, dict[str, float]]:
    """Turns, normalised score and parts of one rollout; a better policy faults less and ends higher."""
    turns = [
        Turn("system", "You are a careful researcher. One message is one action.", 14),
        Turn("user", world.prompt, len(world.prompt) // 4),
    ]
    turns += _look_around(world, rng)
    if rng.random() < 0.5 * (1 - skill):
        turns += _fault(rng)
    best = 0.0
    tries = 1 + (rng.random() < 0.6)
    for attempt in range(tries):
        worth = _worth(skill, rng, attempt)
        turns += _write(world, worth, rng)
        turns += _validate(world, worth, worth - best, rng, left=tries - attempt - 1)
        best = max(best, worth)
    turns += _submit(best, rng)
    score = round(max(-1.0, min(1.0, best + rng.gauss(0, 0.03))), 4)
    raw = world.baseline + score * (world.ceiling - world.baseline)
    faults = sum(turn.fault is not None for turn in turns)
    parts = {"hidden": round(raw, 4), "final": score, "best": round(best, 4), "delta": round(best, 4)}
    return tuple(turns), score, {**parts, "faults": float(faults), "validations": float(tries)}


def _worth(skill: float, rng: random.Random, attempt: int) -> float:
    return max(-0.4, min(0.98, skill * 0.85 + 0.06 * attempt + rng.gauss(0, 0.12)))


def _look_around(world: World, rng: random.Random) -> list[Turn]:
    said = "I look at the files first.\n```bash\nls -l && head -n 3 README.md\n```"
    about = f"# {world.name}\nScores are normalised: 0 is the baseline, 1 the ceiling."
    heard = f"{LISTING}\n{about}\n[turn 1 of 10 | 58 s left]"
    return [_said(said, "bash", rng), _heard(heard, "bash", rng)]


def _fault(rng: random.Random) -> list[Turn]:
    said = "I will now think about what to do with the data and then decide on a model."
    fault = "no action: answer with one tool call or one fenced block"
    if rng.random() < 0.5:
        return [_said(said, None, rng, fault=fault), _heard(f"fault: {fault}", None, rng)]
    ran = Turn("assistant", "```bash\npython fit.py\n```", 12, "bash", fault="the command failed (exit 1)", seconds=0.9)
    return [ran, _heard(TRACEBACK, "bash", rng)]


def _write(world: World, worth: float, rng: random.Random) -> list[Turn]:
    body = world.strong if worth > 0.35 else world.weak
    words = "A better attempt." if worth > 0.35 else "A first attempt."
    said = f"{words}\n```write {world.file}\n{body}\n```"
    return [_said(said, "write", rng), _heard(f"wrote {len(body)} bytes to {world.file}", "write", rng)]


def _validate(world: World, worth: float, gain: float, rng: random.Random, left: int) -> list[Turn]:
    raw = round(world.baseline + worth * (world.ceiling - world.baseline), 4)
    said = Turn("assistant", "```validate\n```", 5, "validate", reward=round(gain, 4), score=raw, seconds=_took(rng))
    return [said, _heard(f"validation score {raw:.4f}\n[validations left {left}]", "validate", rng)]


def _submit(best: float, rng: random.Random) -> list[Turn]:
    said = Turn("assistant", "```submit\n```", 5, "submit", reward=round(max(0.0, best) * 0.2, 4), seconds=_took(rng))
    return [said, _heard("submitted", "submit", rng)]


def _said(text: str, tool: str | None, rng: random.Random, fault: str | None = None) -> Turn:
    return Turn("assistant", text, len(text) // 4, tool, fault=fault, seconds=_took(rng))


def _heard(text: str, tool: str | None, rng: random.Random) -> Turn:
    return Turn("tool", text, len(text) // 4, tool, seconds=round(rng.uniform(0.02, 0.4), 3))


def _took(rng: random.Random) -> float:
    return round(rng.uniform(0.4, 2.4), 3)


def episode(world: World, split: str, version: int, name: str, rng: random.Random, **details: Any) -> Episode:
    """One episode of a policy that has learnt for `version` updates; one in forty fails."""
    skill = details.pop("skill", min(0.9, 0.1 + version / 70))
    at = Progress(
        frames=version * 64, updates=version, episodes=version * 12, tokens=version * 4000, seconds=version * 3.1
    )
    item = details.pop("item", f"{world.name}/{split}/{rng.randrange(20)}")
    if "parent" not in details and rng.random() < 0.025:
        turns = (Turn("user", world.prompt, len(world.prompt) // 4), *_look_around(world, rng))
        note = "the sandbox was killed (out of memory) and could not be made again"
        return Episode(
            world.name, split, 7, at, None, 1, "error", turns=turns, error=note, item=item, id=name, version=version
        )
    turns, score, parts = rollout(world, skill, rng)
    took = round(sum(turn.seconds or 0.0 for turn in turns), 3)
    ended = "truncated" if rng.random() < 0.05 else "terminated"
    return Episode(
        world.name, split, 7, at, score, len(turns) // 2, ended, parts, turns,
        item=item, id=name, version=version, took=took, **details,
    )  # fmt: skip


def training(seed: int, worlds: Sequence[World] = WORLDS) -> Iterator[Episode]:
    """The episodes of one session: groups that it trained on, and evaluations now and then."""
    rng = random.Random(seed)
    for version in VERSIONS:
        for world in worlds:
            for member in range(GROUP):
                yield episode(world, "train", version, f"t{version}-{world.name}-{member}", rng)
        if version % EVALUATED_EVERY == 0:
            for world in worlds:
                for number in range(5):
                    item = f"{world.name}/eval/{number}"
                    yield episode(world, "eval", version, f"e{version}-{world.name}-{number}", rng, item=item)


def search(nodes: int = 15) -> list[Episode]:
    """A tree search over snapshots: each node goes on from the end of its parent."""
    rng = random.Random(5)
    parents = {0: None, 1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 3, 7: 3, 8: 3, 9: 6, 10: 6, 11: 7, 12: 9, 13: 9, 14: 12}
    found, skills = [], {0: 0.1}
    for number in range(nodes):
        parent = parents[number]
        if parent is not None:
            skills[number] = min(0.95, skills[parent] + rng.gauss(0.13, 0.16))
        details = {"item": "blotto/eval/3", "skill": skills[number], "parent": None if parent is None else f"n{parent}"}
        found.append(episode(BLOTTO, "eval", 56, f"n{number}", rng, **details))
    return found


def write_session(
    folder: Path, spec: dict[str, Any], index: int, episodes: Sequence[Episode], state: str = "done"
) -> Path:
    """A session directory with these episodes and the metrics that go with them."""
    folder.mkdir(parents=True)
    document = {
        "format": 1, "name": spec["name"], "seed": index, "session": index, "spec": spec, "threads": 1, "state": state,
        "error": None, "attempts": 1, "parent": None,
        "created": "2026-11-15T18:00:00+00:00", "updated": "2026-11-15T18:20:00+00:00",
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document))
    write_rows(folder / "episodes.jsonl", [each.as_dict() for each in episodes])
    write_rows(folder / "metrics.jsonl", list(_metrics(episodes, final=state == "done")))
    write_rows(folder / "events.jsonl", [])
    (folder / "anchors.json").write_text("{}")
    (folder / "provenance").mkdir()
    (folder / "provenance" / "attempt_001.json").write_text("{}")
    publish(folder / "checkpoints", Progress(frames=3840), lambda at: (at / "weights").write_text("w"))
    return folder


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as the run room writes them."""
    log = JsonLines(path)
    for row in rows:
        log.append(row)
    log.flush()
    log.close()
    return path


def _metrics(episodes: Sequence[Episode], final: bool) -> Iterator[dict[str, Any]]:
    for version in sorted({each.version for each in episodes if each.version is not None}):
        here = [each for each in episodes if each.version == version]
        row: dict[str, Any] = dict(here[0].at.as_dict())
        for split, key in (("train", "train/return"), ("eval", "eval/score")):
            scores = [each.score for each in here if each.split == split and each.score is not None]
            if scores:
                row[key] = sum(scores) / len(scores)
        yield row
    scores = [each.score for each in episodes[-15:] if each.score is not None]
    if final and scores:
        mean = sum(scores) / len(scores)
        ends = {"final/low": mean - 0.05, "final/high": mean + 0.05, "final/episodes": len(scores)}
        yield {**episodes[-1].at.as_dict(), "final/score": mean, **ends}


def write_experiment(
    root: Path, name: str, stamp: str, sessions: Sequence[Sequence[Episode]], state: str = "done"
) -> Path:
    """An experiment of one trial."""
    spec = {
        "name": name,
        "env": {"name": "research", "max_frame": 3840},
        "agent": {"algorithm": {"name": "grpo"}},
        "meta": {"max_session": len(sessions)},
    }
    place = root / name / stamp
    place.mkdir(parents=True)
    created = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[9:11]}:{stamp[11:13]}:00+00:00"
    (place / "experiment.json").write_text(
        json.dumps({"format": 1, "spec": name, "created": created, "parent": None, "command": []})
    )
    (place / "resolved.json").write_text(json.dumps(spec))
    (place / "spec.yaml").write_text(f"name: {name}\n")
    for index, episodes in enumerate(sessions):
        write_session(place / "trial_000" / f"session_{index}", spec, index, episodes, state)
    return place


def write_runs(root: Path) -> Path:
    """The three runs; returns the folder that holds them."""
    write_experiment(root, "grpo_research", "20261115-180000", [list(training(seed)) for seed in range(3)])
    write_experiment(root, "search_blotto", "20261115-183000", [search()])
    half = [each for each in training(9, [TITANIC]) if (each.version or 0) < 30]
    write_experiment(root, "grpo_titanic", "20261115-190000", [half], state="stopped")
    return root


def play(count: int = 5) -> list[Episode]:
    """Episodes of a game without words, as the torch engine keeps them."""
    at = Progress(frames=1000, updates=10, episodes=5, seconds=2.0)
    return [Episode("CartPole-v1", "eval", number, at, 400.0 + number, 400, "terminated") for number in range(count)]
