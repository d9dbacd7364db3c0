"""What `operant tasks` says of tasks of many turns: how they begin, and how their scripted agents did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from operant.cli.output import document, say
from operant.cli.task_errors import rate, rate_text
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.envs.text.dialogue import DialogueTask
    from operant.envs.text.validate_agents import AgentReport


def show_dialogue(task: DialogueTask, split: str, takes: Sequence[str], as_json: bool) -> int:
    """Print the facts of a task, and the first messages to the policy."""
    from operant.report.formatting import columns

    problems = task.problems("train" if split == "train" else "eval")
    first = problems[0]
    opening = [(role, text) for role, text in (("system", first.system), ("user", first.prompt)) if text]
    if as_json:
        messages = [{"role": role, "text": text} for role, text in opening]
        facts = {"task": task.name, "problems": len(problems), "facts": dict(task.facts()), "opening": messages}
        document({**facts, "exit": EXIT_DONE})
        return EXIT_DONE
    say(f"{task.name}: {len(problems):,} problems in {split}, worked on in turns", *takes)
    say(*(line.rstrip() for line in columns([[name, fact] for name, fact in task.facts().items()])))
    say("", f"--- {first.id}")
    for role, text in opening:
        say(f"[{role}]", text)
    return EXIT_DONE


def as_data(report: AgentReport) -> dict[str, Any]:
    """A report as `--json` gives it."""
    parts = [vars(part) for part in report.parts]
    kept = {"task": report.task, "tolerance": report.tolerance, "seconds": report.seconds}
    rates = {"false_negatives": rate(*report.errors(right=True)), "false_positives": rate(*report.errors(right=False))}
    found = {**rates, "invalid": report.invalid, "missing": report.missing, "sound": report.sound}
    return {**kept, "agents": parts, **found}


def print_agent_reports(reports: Sequence[AgentReport]) -> None:
    """One table for each task."""
    from operant.report.formatting import columns, duration

    head = ["agent", "kind", "score", "raw", "time", ""]
    for one in reports:
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
        negatives, positives = (rate_text(*one.errors(right)) for right in (True, False))
        say(f"  experts refused: {negatives}; others paid: {positives}; without a score: {one.invalid}")
        if one.missing:
            say(f"  there is no agent for: {', '.join(one.missing)}")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
