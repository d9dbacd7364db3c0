"""What `operant tasks` says of tasks of many turns: how they begin, and how their scripted agents did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from operant.cli.output import document, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.envs.text.dialogue import DialogueTask
    from operant.envs.text.validate_agents import AgentReport


def show_dialogue(task: DialogueTask, split: str, takes: Sequence[str], as_json: bool) -> int:
    """Print the facts of a task, and what a policy is told first."""
    from operant.report.formatting import columns

    problems = task.problems("train" if split == "train" else "eval")
    first = problems[0]
    opening = [(role, text) for role, text in (("system", first.system), ("user", first.prompt)) if text]
    if as_json:
        told = [{"role": role, "text": text} for role, text in opening]
        facts = {"task": task.name, "problems": len(problems), "facts": dict(task.facts()), "opening": told}
        document({**facts, "exit": EXIT_DONE})
        return EXIT_DONE
    say(f"{task.name}: {len(problems):,} problems in {split}, worked on in turns", *takes)
    say(*(line.rstrip() for line in columns([[name, fact] for name, fact in task.facts().items()])))
    say("", f"--- {first.id}")
    for role, text in opening:
        say(f"[{role}]", text)
    return EXIT_DONE


def as_data(rehearsal: AgentReport) -> dict[str, Any]:
    """A rehearsal for `--json`."""
    parts = [vars(part) for part in rehearsal.parts]
    kept = {"task": rehearsal.task, "tolerance": rehearsal.tolerance, "seconds": rehearsal.seconds}
    return {**kept, "agents": parts, "missing": rehearsal.missing, "sound": rehearsal.sound}


def tell_rehearsals(rehearsals: Sequence[AgentReport]) -> None:
    """One table for each task."""
    from operant.report.formatting import columns, duration

    head = ["agent", "kind", "score", "raw", "time", ""]
    for one in rehearsals:
        said = "sound" if one.sound else "NOT SOUND"
        say(f"{one.task}: {said}, {duration(one.seconds)}; chance may move a score by {one.tolerance:.3f}")
        rows = [
            [
                part.agent,
                part.kind,
                _number(part.score),
                _number(part.hidden),
                duration(part.seconds),
                part.problem or "as it should",
            ]
            for part in one.parts
        ]
        say(*(f"  {line.rstrip()}" for line in columns([head, *rows])))
        if one.missing:
            say(f"  nobody has written: {', '.join(one.missing)}")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
