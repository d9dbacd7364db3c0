"""The evaluation files of rlvr-experiments: lists of lm_eval's benchmarks, as commands that evaluate on our tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operant.errors import SpecError
from operant.spec.dialects.conversion import Remark, Section
from operant.spec.dialects.converter import Converter
from operant.spec.dialects.table import Table, ignored, read, refused, same, under, worked
from operant.spec.reading.document import Document, Source
from operant.spec.reading.limits import MAX_BYTES
from operant.spec.reading.yaml import read_yaml

LAB = "rlvr-experiments"
TASKS = {"gsm8k_cot": "gsm8k", "gsm8k": "gsm8k", "ifeval": "ifeval", "minerva_math": "math", "hendrycks_math": "math"}
TASKS |= {"hendrycks_math_500": "math", "mbpp": "mbpp", "humaneval": "humaneval"}
WITH_SHOTS, WITH_LENGTH = ("gsm8k",), ("gsm8k", "math", "ifeval")


@dataclass(frozen=True)
class Evaluation:
    """What a file of benchmarks comes to: one command for each number of solved examples, and what differs."""

    commands: tuple[str, ...]
    remarks: tuple[Remark, ...]


def _benchmarks(top: Section, key: str) -> None:
    """The tasks, their solved examples, and the longest answers."""
    lengths = top.below("max_gen_toks")
    found: dict[str, dict[str, Any]] = {}
    groups = top.below("watch").items("task_groups")
    lists = [*top.items(key), *(each for group in groups for each in group.items("benchmarks"))]
    for group in groups:
        group.get("gpu")
    for each in lists:
        name = each.need("task")
        task = each.only("task", TASKS, f"is none of {', '.join(TASKS)}") if name is not None else None
        shots = each.whole("num_fewshot", 0)
        if task is None:
            continue
        if shots and task not in WITH_SHOTS:
            each.remark("num_fewshot", f"left out: {task} is asked without solved examples")
        asked = found.setdefault(f"{task}.{shots if task in WITH_SHOTS else 0}", {"task": task})
        asked["shots"] = shots if task in WITH_SHOTS else 0
        length = lengths.get(str(name)) or lengths.get("default")
        asked["length"] = max(filter(None, (asked.get("length"), length)), default=None)
    if not found:
        top.refuse(key, "names no benchmark")
    top.set(key, "asked", list(found.values()))
    for each in lengths.data:
        lengths.get(each)


TABLE = Table(
    (
        same("seed", "which problems, and in which order", "seed"),
        worked("benchmarks", "lm_eval's tasks with their solved examples", "asked", _benchmarks),
        ignored("output_dir", "where results go", "answers and scores are recorded beside the run; --out DIR"),
        ignored("vllm", "settings of vLLM", "the built-in generator answers; --url lets a server do it"),
        ignored("checkpoints", "models to evaluate", "operant eval takes one run or model"),
        same("watch.enable", "evaluate checkpoints as they come", "follow"),
        *under(
            "watch",
            ignored(
                "local_dir s3_prefix pattern poll_interval_s seen_path gpu_mode gpus",
                "which checkpoints",
                "operant eval RUN --follow evaluates each new one of a run",
            ),
        ),
        refused("limit", "at most so many problems", "is no key that their program reads"),
    )
)


def recognises(data: Any) -> bool:
    """Whether plain data is such a file: benchmarks for vLLM, and neither roles nor an environment."""
    if not isinstance(data, dict) or "env" in data or "roles" in data or not isinstance(data.get("vllm"), dict):
        return False
    watch = data.get("watch")
    return isinstance(data.get("benchmarks"), list) or (isinstance(watch, dict) and "task_groups" in watch)


def evaluation_in(target: str) -> Evaluation | None:
    """The evaluation that a file asks for; None for any other file, and SpecError where it cannot be done here."""
    path = Path(target)
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return None
    try:
        document = read_yaml(Source(path.read_text(encoding="utf-8-sig"), target), last_wins=True)
    except (SpecError, OSError, UnicodeDecodeError):
        return None
    return _evaluation(document) if recognises(document.data) else None


def _evaluation(document: Document) -> Evaluation:
    converted = Converter(LAB, _sections, TABLE)(document)
    found = converted.document.data
    asked, follow = found["asked"], " --follow" if found.get("follow") else ""
    commands = [f"{_command(asked, shots)} --seed {found.get('seed', 42)}{follow}" for shots in _rounds(asked)]
    return Evaluation(tuple(commands), converted.remarks)


def _sections(top: Section) -> None:
    read(top, TABLE.chosen(""))
    top.close_all()


def _rounds(asked: list[dict[str, Any]]) -> list[int]:
    """The numbers of solved examples, each of which takes a command of its own."""
    counted = sorted({each["shots"] for each in asked if each["task"] in WITH_SHOTS})
    return counted or [0]


def _command(asked: list[dict[str, Any]], shots: int) -> str:
    """Tasks without solved examples are asked in the first of the commands."""
    first = shots == _rounds(asked)[0]
    chosen = [each for each in asked if (each["shots"] == shots if each["task"] in WITH_SHOTS else first)]
    names = ",".join(dict.fromkeys(each["task"] for each in chosen))
    shown = [f" -a {each['task']}.shots={shots}" for each in chosen if each["task"] in WITH_SHOTS and shots]
    longest = [
        f" -a {each['task']}.max_tokens={each['length']}"
        for each in chosen
        if each["length"] and each["task"] in WITH_LENGTH
    ]
    return f"operant eval MODEL --tasks {names}{''.join(shown)}{''.join(longest)}"
