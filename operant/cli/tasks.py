"""`operant tasks`: the language tasks, their problems, and checks of their verifiers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from operant.cli.options import AsJson
from operant.cli.output import aside, document, plural, say
from operant.cli.task_checks import as_data, print_agent_reports, show_dialogue
from operant.cli.task_errors import print_reports, report_data
from operant.errors import EXIT_DONE, EXIT_FAILED, UsageError

if TYPE_CHECKING:
    from operant.envs.text.task import Problem, Task
    from operant.envs.text.validate import Report
    from operant.envs.text.validate_agents import AgentReport

NEEDS_ARGUMENTS = ("jsonl",)

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["--help", "-h"]})


def complete_task(incomplete: str) -> list[str]:
    """Names of tasks."""
    from operant.envs.text.tasks import task_names

    return [name for name, _ in task_names() if name.startswith(incomplete)]


TaskName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A task's name, a .jsonl file, a task's folder, mlgym:FILE, or module:Class.",
        autocompletion=complete_task,
        show_default=False,
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--argument", "-a", metavar="KEY=VALUE", help="An argument of the task; may be repeated.", show_default=False
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="PLACE",
        help="Folder of datasets, s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME; OPERANT_DATA by default.",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def tasks(context: typer.Context, as_json: AsJson = False) -> int:
    """List the language tasks; show the problems of one; check its verifier.

    \b
      operant tasks
      operant tasks show arithmetic -a style=bare
      operant tasks validate all --data DIR
    """
    if context.invoked_subcommand is not None:
        return EXIT_DONE
    from operant.envs.text.tasks import task_names
    from operant.report.formatting import columns

    rows = task_names()
    if as_json:
        document({"tasks": [{"name": name, "about": about} for name, about in rows], "exit": EXIT_DONE})
    else:
        say(*columns([list(row) for row in rows]))
    return EXIT_DONE


@app.command("show", short_help="Print problems of a task with their answers and how they are scored.")
def show(
    name: TaskName,
    count: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many problems.")] = 3,
    split: Annotated[str, typer.Option("--split", metavar="SPLIT", help="`train` or `eval`.")] = "eval",
    arguments: Arguments = None,
    data: Data = None,
    as_json: AsJson = False,
) -> int:
    """Print problems of a task: prompt, stop strings, an answer that is right, and how answers are scored.

    Of a task that is worked on in turns: its facts, and the first messages to the policy.

    \b
      operant tasks show gsm8k -n 1 --split train -a shots=2 --data DIR
    """
    from operant.envs.text.dialogue import DialogueTask

    if split not in ("train", "eval"):
        raise UsageError(f"there is no split {split!r}", remedy="--split train, or --split eval")
    task = _made(name, parsed(arguments), data)
    if isinstance(task, DialogueTask):
        return show_dialogue(task, split, _takes(type(task)), as_json)
    problems = task.problems("train" if split == "train" else "eval")
    shown = problems[:count]
    scored_by = _first_paragraph(type(task).verify.__doc__)
    if as_json:
        rows = [vars(problem) | {"gold": task.gold(problem)} for problem in shown]
        document({"task": task.name, "problems": len(problems), "judged": scored_by, "shown": rows, "exit": EXIT_DONE})
        return EXIT_DONE
    say(f"{task.name}: {plural(len(problems), 'problem')} in {split}", f"scored by: {scored_by}", *_takes(type(task)))
    for problem in shown:
        say("", *_problem_lines(problem, task.gold(problem)))
    return EXIT_DONE


@app.command("validate", short_help="Measure how often verifiers are wrong, without a model.")
def validate(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Tasks, or `all`.", autocompletion=complete_task, show_default=False),
    ],
    arguments: Arguments = None,
    data: Data = None,
    samples: Annotated[
        int,
        typer.Option("--samples", "--wrong", metavar="N", min=0, help="How many answers of each kind but gold ones."),
    ] = 1_000,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Processes that verify.")] = 2,
    as_json: AsJson = False,
) -> int:
    """Measure without a model how often a verifier refuses right answers and pays for wrong ones, with 95 % intervals.

    Right are the gold answers and the same in other forms; wrong are near misses, other problems' answers and cheats.
    Where a gold answer does not score 1, or a wrong one does, the exit code is 3. A task that is worked on in turns is
    played by its scripted agents: an expert must reach its ceiling, a lazy one its baseline, and no cheater more.

    \b
      operant tasks validate all --data DIR
      operant tasks validate gsm8k math --data DIR --json
      operant tasks validate ./my_task
      operant tasks validate mine.jsonl -a verifier=number
    """
    from operant.envs.text.validate_agents import AgentReport

    found: list[Report | AgentReport] = []
    for one in _asked_for(names):
        try:
            found.append(_validated(one, parsed(arguments), data, samples, workers))
        except UsageError as problem:
            if "all" not in names:
                raise
            aside(f"{one}: left out: {problem.cause}")
    code = EXIT_DONE if found and all(one.sound for one in found) else EXIT_FAILED
    if as_json:
        rows = [as_data(one) if isinstance(one, AgentReport) else report_data(one) for one in found]
        document({"tasks": rows, "exit": code})
    else:
        print_reports([one for one in found if not isinstance(one, AgentReport)])
        print_agent_reports([one for one in found if isinstance(one, AgentReport)])
    return code


@app.command("import", short_help="Import the task files of an MLGym checkout; say which run here.")
def import_(
    place: Annotated[
        str,
        typer.Argument(
            metavar="CHECKOUT", help="A checkout, a folder of its task files, or one file.", show_default=False
        ),
    ],
    data: Data = None,
    baselines: Annotated[bool, typer.Option("--baselines", help="Run their baselines and compare the scores.")] = False,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", metavar="N", min=1, help="With --baselines, how long each of their programs may run at most."
        ),
    ] = 300,
    as_json: AsJson = False,
) -> int:
    """Import every task file of an MLGym checkout, and say which run here and what the others lack.

    A dataset's file can be named too. Their baselines are run in the sandbox, one after the other; one that fails, or
    runs out of time, stops none of the others.

    \b
      operant tasks import MLGym --data DIR
      operant tasks import MLGym/configs/tasks/blotto.yaml --baselines
    """
    from operant.cli.task_import import import_tasks

    return import_tasks(place, data, seconds if baselines else None, as_json)


def _asked_for(names: list[str]) -> list[str]:
    from operant.envs.text.tasks import task_names

    every = [task for task, _ in task_names() if task not in NEEDS_ARGUMENTS]
    return list(dict.fromkeys(task for name in names for task in (every if name == "all" else [name])))


def _validated(
    name: str, arguments: dict[str, Any], data: str | None, samples: int, workers: int
) -> Report | AgentReport:
    from operant.envs.text.dialogue import DialogueTask
    from operant.envs.text.pool import Verifiers
    from operant.envs.text.validate import validate
    from operant.envs.text.validate_agents import validate_with_agents

    task = _made(name, arguments, data)
    if isinstance(task, DialogueTask):
        return validate_with_agents(task)
    with Verifiers([task], workers) as verifiers:
        return validate(task, verifiers, samples)


def _made(name: str, arguments: dict[str, Any], data: str | None) -> Task:
    from operant.envs.text.tasks import accepted_arguments, class_of, make_task

    if data is not None and "data" in accepted_arguments(class_of(name)):
        arguments = {"data": data, **arguments}
    return make_task(name, arguments)


def parsed(arguments: list[str] | None) -> dict[str, Any]:
    """`digits=3` is a number, `operations=["add", "table"]` a list, anything that is no JSON a text."""
    parsed: dict[str, Any] = {}
    for argument in arguments or []:
        key, equals, value = argument.partition("=")
        if not equals or not key:
            raise UsageError(f"{argument!r} is no argument", remedy="-a KEY=VALUE, such as -a digits=3")
        try:
            parsed[key] = json.loads(value)
        except ValueError:
            parsed[key] = value
    return parsed


def _takes(kind: type[Task]) -> list[str]:
    from operant.envs.text.tasks import accepted_arguments

    words = [
        one.name if one.default is one.empty else f"{one.name}={one.default}"
        for one in accepted_arguments(kind).values()
    ]
    return [f"takes: {', '.join(words)}"] if words else []


def _problem_lines(problem: Problem, gold: str | None) -> list[str]:
    lines = [f"--- {problem.id}", *([f"[system] {problem.system}"] if problem.system else []), problem.prompt]
    lines.append(f"[gold] {gold if gold is not None else 'no reference answer'}")
    return [*lines, f"[ends] at {' or '.join(map(repr, problem.stop)) or 'its end'}, or {problem.max_tokens} tokens"]


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "its own rule").split("\n\n")[0].split())
