"""Kills the processes of small language runs at random moments, resumes them, and checks that no prompt is lost.

    python -m benchmarks.random_kills --kills 200 --out benchmarks/results/random_kills.json

For each kind of run there is one that nobody kills. The others are killed with SIGKILL, again and again: the trainer,
a verifier, a sandbox, or a generator on Ray. After each death of the trainer, and at the end of each run, the prompt
journal must balance, against the checkpoints and the episodes too; in the end the very prompts must have been used that
the undisturbed run used, and in turn (staleness 0) the weights must be the same bytes. The exit code is 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.killed_runs import CASES, COMMANDS, SLOW_REWARD, Case
from operant.run.checkpoint import list_checkpoints
from operant.run.layout import EPISODES_FILE
from operant.run.metrics import read_rows
from operant.run.prompt_balance import PromptBalance, check_prompts
from operant.run.records import checkpoint_difference
from operant.run.run import Run

MARKS = {
    "verifier": "spawn_main",
    "sandbox": "bwrap",
    "generator": "ray::GeneratorWorker",
    "ray verifier": "ray::VerifierWorker",
}
"""What the command line of a process holds that may be killed beside the trainer."""
PATIENCE = 300.0


@dataclass
class Kill:
    """One SIGKILL: whom, when, and what the journal said at the next look; None if the attempt had not begun it."""

    case: str
    target: str
    seconds: float
    attempt: int
    balanced: bool | None = None
    faults: list[str] = field(default_factory=list)


@dataclass
class Result:
    """What came of all runs of one kind."""

    runs: int = 0
    attempts: int = 0
    prompts: int = 0
    undone: int = 0
    restored: int = 0
    continued: int = 0
    regenerated: int = 0
    repeated_turns: int = 0
    failures: list[str] = field(default_factory=list)
    early_kills: int = 0
    targets: dict[str, int] = field(default_factory=dict)


class Attempt:
    """A session in a process of its own, forked from this one, which has loaded the engine."""

    def __init__(self, run: Run) -> None:
        self.begun = time.monotonic()
        self.pid = os.fork()
        self._status: int | None = None
        if self.pid == 0:
            _train(run.path)

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status

    def kill(self) -> None:
        """Kill the trainer, and wait for its end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            _, self._status = os.waitpid(self.pid, 0)


def main() -> int:
    """Kill, resume, check; write the table."""
    arguments = _parsed()
    chance = random.Random(arguments.seed)
    _preload()

    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    (folder / "slow_reward.py").write_text(SLOW_REWARD)
    (folder / "kill_task.py").write_text(COMMANDS)
    os.environ["PYTHONPATH"] = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
    sys.path.insert(0, str(folder))
    # Another Ray of this machine must be neither used nor killed.
    os.environ["RAY_TMPDIR"] = str(folder)
    names = [name for name in CASES if arguments.only in name and not any(each in name for each in arguments.skip)]
    undisturbed = {name: _undisturbed(folder, name) for name in names}
    print({name: round(seconds, 1) for name, (_, seconds) in undisturbed.items()}, flush=True)
    results, kills, begun = {name: Result() for name in names}, list[Kill](), time.monotonic()
    number = 0
    while (
        sum(kill.balanced is not None for kill in kills) < arguments.kills
        and time.monotonic() - begun < arguments.seconds
    ):
        name = names[number % len(names)]
        number += 1
        path = folder / f"run_{number}"
        kills += _disturbed(path, name, undisturbed[name], results[name], chance)
        print(f"{len(kills)} kills: {name}: {asdict(results[name])}", flush=True)
        _write(arguments.out, results, kills, arguments.seed)
        if results[name].failures:
            print(f"failed: {folder} is kept", file=sys.stderr)
            return 1
        shutil.rmtree(path, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    return 0 if kills else 1


def _preload() -> None:
    """Import here what every attempt needs, which takes ten times as long as the attempt itself."""
    from operant.engines.language import build, trainer  # noqa: F401
    from operant.engines.language.policy.model import load_policy
    from operant.run.provenance import installed_packages

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    installed_packages()
    load_policy("tiny")


def _undisturbed(folder: Path, name: str) -> tuple[Run, float]:
    """A run of this kind that nobody kills, and how long it took."""
    run, begun = _new_run(folder / f"undisturbed_{len(list(folder.iterdir()))}", name), time.monotonic()
    attempt = Attempt(run)
    _wait(attempt, PATIENCE)
    if attempt.poll() != 0 or not (found := check_prompts(run)) or not found.balanced:
        raise SystemExit(f"{name}: the undisturbed run failed or does not balance; see {run.path}")
    return run, time.monotonic() - begun


def _disturbed(path: Path, name: str, like: tuple[Run, float], result: Result, chance: random.Random) -> list[Kill]:
    """One run, killed at random moments until one attempt comes to its end."""
    run, kills, unchecked = _new_run(path, name), list[Kill](), list[Kill]()
    case, whole = CASES[name], like[1]
    while True:
        before = _attempts(run)
        attempt, target = Attempt(run), chance.choice(("trainer", *case.targets))
        delay = chance.uniform(0.0, 0.9 * whole)
        while target != "trainer" and _wait(attempt, delay) is None:
            victim = _find(attempt.pid, target)
            if victim is not None:
                os.kill(victim, signal.SIGKILL)
                unchecked.append(Kill(name, target, round(time.monotonic() - attempt.begun, 3), run.attempts))
                target, delay = chance.choice(("trainer", *case.targets)), chance.uniform(0.0, 0.9 * whole)
            else:
                delay = 0.05
        ended = _wait(attempt, delay)
        if ended is None:
            attempt.kill()
            unchecked.append(Kill(name, "trainer", round(time.monotonic() - attempt.begun, 3), run.attempts))
        _check(run, unchecked, result, before)
        kills += unchecked
        unchecked = []
        if ended is not None:
            if ended != 0:
                result.failures.append(f"run ended with status {ended}")
            _finish(run, like[0], case, result, kills)
            return kills


def _attempts(run: Run) -> int:
    """How many attempts the journal has."""
    found = check_prompts(run)
    return 0 if found is None else found.attempts


def _check(run: Run, kills: list[Kill], result: Result, before: int) -> None:
    """The journal balances after these kills; they prove nothing if it has no attempt more than before."""
    found = check_prompts(run)
    if found is None or found.attempts == before:
        result.early_kills += len(kills)
        return
    faults = found.faults
    for kill in kills:
        kill.balanced, kill.faults = not faults, faults[:3]
        result.targets[kill.target] = result.targets.get(kill.target, 0) + 1
    if faults:
        result.failures.append(faults[0])


def _finish(run: Run, like: Run, case: Case, result: Result, kills: list[Kill]) -> None:
    """A run that came to its end used the prompts of the undisturbed one."""
    found, other = check_prompts(run), check_prompts(like)
    assert other is not None
    if found is None:
        result.failures.append("there is no journal")
        return
    if _used(found) != _used(other):
        result.failures.append("other prompts were used than in the undisturbed run")
    if "sandbox" in case.targets:
        result.failures += _lost_lines(run)
    if not case.staleness:
        last, theirs = (list_checkpoints(each.checkpoints)[-1] for each in (run, like))
        difference = checkpoint_difference(last, theirs)
        result.failures += [f"after {len(kills)} kills the weights differ: {difference}"] if difference else []
    result.runs, result.attempts = result.runs + 1, result.attempts + found.attempts
    result.prompts += len(found.outcomes)
    for key in ("undone", "restored", "continued", "regenerated", "repeated_turns"):
        setattr(result, key, getattr(result, key) + getattr(found, key))


def _lost_lines(run: Run) -> list[str]:
    """Rollouts whose file had fewer lines than turns were taken, though no interruption was told."""
    lost = []
    for row in read_rows(run.path / EPISODES_FILE):
        said = [turn["text"].strip() for turn in row.get("turns", ()) if turn["role"] == "tool"]
        expected = [str(turn) for turn in range(1, len(said) + 1)]
        if row["split"] == "train" and said != expected and not any("interrupted" in text for text in said):
            lost.append(f"{row['item']} answered {said}")
    return lost


def _used(found: PromptBalance) -> dict[int, str]:
    """The prompts with an outcome, and their problems."""
    return {place: each.row["problem"] for place, each in found.outcomes.items()}


def _new_run(path: Path, name: str) -> Run:
    return Run.create(path, name="kills", spec=CASES[name].spec("kills"), seed=0, session=0, threads=1)


def _train(path: Path) -> None:
    """What the forked process does."""
    log = os.open(path.parent / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    status = 1
    try:
        from operant.engines.language import train

        train(Run.open(path))
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _wait(attempt: Attempt, seconds: float) -> int | None:
    """Wait for the end of an attempt for so long; its status if it ended."""
    end = time.monotonic() + seconds
    while attempt.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return attempt.poll()


def _find(pid: int, target: str) -> int | None:
    """A process of that kind among the descendants of an attempt; the newest."""
    found = [each for each in _descendants(pid) if MARKS[target] in _command(each)]
    return max(found, default=None)


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        except (OSError, ValueError):
            continue
    below, waiting = list[int](), [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        below += children
        waiting += children
    return below


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _write(out: Path, results: dict[str, Result], kills: list[Kill], seed: int) -> None:
    """The table so far."""
    balanced = sum(bool(kill.balanced) for kill in kills)
    document = {
        "seed": seed,
        "kills": sum(kill.balanced is not None for kill in kills),
        "balanced": balanced,
        "early_kills": sum(kill.balanced is None for kill in kills),
        "targets": dict(Counter(kill.target for kill in kills if kill.balanced is not None)),
        "cases": {name: asdict(result) for name, result in results.items()},
        "each": [asdict(kill) for kill in kills],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document, indent=1) + "\n")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only the kinds of run with this in their name")
    parser.add_argument("--skip", nargs="*", default=[], help="not the kinds of run with one of these in their name")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/random_kills.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
