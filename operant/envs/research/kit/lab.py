"""Grading a spec: it is checked field by field, trained by the lab's own command, and scored by the lab's own report.

The agent hands over settings, never code: the problem, the budget, the seeds and the evaluation stay what they were,
and nothing of the training is within its reach. The training runs in a sandbox all the same, for settings decide how
much memory and time it asks for.
"""

from __future__ import annotations

import json
import os
import site
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import operant
from operant.envs.research.grading import Unfit, Work
from operant.envs.research.packages import ONE_THREAD
from operant.envs.sandbox import Kind, Limits, Ran, open_sandbox
from operant.errors import OperantError
from operant.spec.load import load
from operant.spec.reading.document import leaves
from operant.spec.schema import Spec

PACKAGE = Path(operant.__file__).parent
MEBIBYTE = 1 << 20
SPEC = "spec.yaml"
MOST_BYTES = 20_000
FREE = ("agent", "env.num_envs", "env.normalize_obs", "env.normalize_reward", "env.clip_reward")
ALGORITHMS = ("a2c", "crossq", "dqn", "ppo", "ppo_sil", "random", "reinforce", "sac", "sarsa", "sil")
MOST_ENVS, MOST_UNITS, MOST_LAYERS, MOST_MEMORY = 64, 256, 4, 100_000
SEEDS = 2**31
WHY_BYTES = 300


@dataclass(frozen=True)
class Lab:
    """What an agent starts from, and how many sessions are trained to grade it.

    A process of it may use `cpu_seconds` of a processor, all of them together `memory_mb` and `seconds`; a spec that
    asks for more is unfit.
    """

    start: Path
    sessions: int
    cpu_seconds: int = 60
    seconds: float = 480.0
    memory_mb: int = 3072

    @property
    def limits(self) -> Limits:
        """The same for the sandbox. Torch maps far more than it holds, and starts threads, which count."""
        memory = self.memory_mb * MEBIBYTE
        disk = 128 * MEBIBYTE
        return Limits(self.cpu_seconds, memory, 256, disk, disk, open_files=1024, output=disk, maps_freely=True)


def grade_lab(work: Work, lab: Lab) -> float:
    """The mean score of the final evaluations of sessions with hidden seeds."""
    return trained_score(allowed_spec(work.text(SPEC), lab.start), work.seed, lab, work.kind)


def allowed_spec(text: str, start: Path) -> str:
    """The spec to train, written anew from what the agent's file means; `Unfit` where that may not be."""
    if len(text) > MOST_BYTES:
        raise Unfit(f"{SPEC} is longer than {MOST_BYTES} characters")
    with tempfile.TemporaryDirectory(prefix="operant-lab-") as folder:
        path = Path(folder) / SPEC
        path.write_text(text, encoding="utf-8")
        try:
            given = load(str(path)).spec
        except OperantError as problem:
            raise Unfit(f"{SPEC}: {problem.cause}") from None
    for problem in objections(given, load(str(start)).spec):
        raise Unfit(f"{SPEC}: {problem}")
    return json.dumps(given.model_dump(mode="json"))


def objections(given: Spec, start: Spec) -> Iterator[str]:
    """What is wrong with a spec: fields that are not free, and sizes that would not fit the grader's machine."""
    old, new = (dict(leaves(spec.model_dump(mode="json"))) for spec in (start, given))
    for path in {**old, **new}:
        name = ".".join(map(str, path))
        free = any(name == field or name.startswith(f"{field}.") for field in FREE)
        if not free and name != "name" and old.get(path) != new.get(path):
            yield f"{name} may not be changed: it is {old.get(path)!r}"
    agent = given.agent
    if agent.algorithm.name not in ALGORITHMS:
        yield f"agent.algorithm.name must be one of {', '.join(ALGORITHMS)}"
    if given.engine_name != "torch" or agent.model is not None or agent.net.type != "mlp":
        yield "the agent must be one of the torch engine, with a net of type mlp"
    yield from too_large(given.model_dump(mode="json"))


def too_large(spec: dict[str, Any]) -> Iterator[str]:
    """Sizes beyond what is granted."""
    net, memory = spec["agent"]["net"], spec["agent"]["memory"] or {}
    units = [*net["hidden"], net.get("recurrent") or 0]
    if max(units) > MOST_UNITS or len(units) + (net.get("layers") or 1) > MOST_LAYERS + 2:
        yield f"a net may have {MOST_LAYERS} layers of {MOST_UNITS} units at most"
    critic = spec["agent"]["algorithm"].get("critic_hidden") or []
    if max(critic, default=0) > MOST_UNITS or len(critic) > MOST_LAYERS:
        yield f"agent.algorithm.critic_hidden may have {MOST_LAYERS} layers of {MOST_UNITS} units at most"
    if spec["env"]["num_envs"] > MOST_ENVS:
        yield f"env.num_envs may be {MOST_ENVS} at most"
    if memory.get("max_size", 0) > MOST_MEMORY:
        yield f"agent.memory.max_size may be {MOST_MEMORY} at most"


def trained_score(spec: str, seed: int, lab: Lab, kind: Kind = "auto") -> float:
    """The score that the lab reports of a spec; `Unfit` where its training fails, or asks for more than is granted."""
    line = ["-m", "operant", "train", SPEC, "--json", "--plain", "--out", "run", "--sessions", str(lab.sessions)]
    line += ["--seed", str(seed % SEEDS), "-s", f"meta.eval_seed={(seed // SEEDS) % SEEDS}"]
    libraries = installed_folders()
    environment = {**ONE_THREAD, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *libraries])}
    with open_sandbox(
        kind, lab.limits, {SPEC: spec.encode()}, readable=[*libraries, str(PACKAGE)], shows_operant=True
    ) as sandbox:
        return reported(sandbox.run([sandbox.python, "-B", *line], seconds=lab.seconds, environment=environment))


def installed_folders() -> list[str]:
    """The folders of packages that this Python imports from."""
    known = [*site.getsitepackages(), site.getusersitepackages()]
    return list(dict.fromkeys(path for path in sys.path if path in known and os.path.isdir(path)))


def reported(ran: Ran) -> float:
    """The score in what the command printed; `Unfit` for everything else that may come of a spec."""
    if ran.killed:
        raise Unfit(f"the training took too much {ran.killed}")
    try:
        report = json.loads(ran.out)
        outcomes, trial = report["outcomes"], report["trials"][0]
    except (ValueError, LookupError, TypeError, RecursionError):
        why = ran.err.decode(errors="replace").strip()[-WHY_BYTES:]
        raise Unfit(f"the training gave no report, exit {ran.code}: {why}") from None
    unfinished = [str(outcome["cause"] or outcome["verdict"]) for outcome in outcomes if outcome["state"] != "done"]
    if unfinished or trial["score"] is None:
        raise Unfit(f"the training failed: {', '.join(unfinished)[:WHY_BYTES] or 'no score'}")
    return float(trial["score"]["point"])
