"""How often the verifiers that ship with Operant are wrong: the tables of docs/howto/graders.md.

python -m benchmarks.graders --data DIR                    # all of them, one after the other
python -m benchmarks.graders --data DIR gsm8k math         # these alone; the others stay as they were stored

Sets that are not among the data are made from those that are, or from the examples of their kinds of instructions.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.grader_data import write_sets
from operant.cli.task_checks import as_data
from operant.cli.task_errors import report_data
from operant.envs.text.dialogue import DialogueTask
from operant.envs.text.pool import Verifiers
from operant.envs.text.tasks import accepted_arguments, class_of, make_task
from operant.envs.text.validate import validate
from operant.envs.text.validate_agents import validate_with_agents

RESULT = Path(__file__).parent / "results" / "graders.json"
SAMPLES, SLOW_SAMPLES = 2_000, 300
SLOW = ("mbpp", "humaneval", "apps")
ROLLOUTS = 10
GENERATED: dict[str, dict[str, Any]] = {
    name: {} for name in ("arithmetic", "countdown", "largest", "count_letters", "sort", "copy", "one_question")
}
BARE = {f"{name} (bare)": {"style": "bare"} for name in GENERATED if name != "one_question"}
FROM_DATA = ("gsm8k", "svamp", "math", "ifeval", "mbpp", "humaneval")
MADE = ("if_multi_constraints", "rlvr_ifeval", "deepscaler", "allenai_rlvr", "apps")
GYMS = ("leg_counting", "chain_sum", "basic_arithmetic", "gcd")
JSONL = ("exact", "number", "last_number", "math")
IN_TURNS = ("guess", "hackmatrix_game", "blotto", "prisoners_dilemma", "battle_of_sexes", "sat", "titanic")


def rows(data: str, made: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every row of the table: the task's name and its arguments."""
    found: dict[str, tuple[str, dict[str, Any]]] = {name: (name, arguments) for name, arguments in GENERATED.items()}
    found |= {label: (label.split()[0], arguments) for label, arguments in BARE.items()}
    found |= {name: (name, {"data": data}) for name in FROM_DATA}
    found |= {name: (name, {"data": made}) for name in MADE}
    found |= {f"jsonl: {each}": (f"{made}/{each}.jsonl", {"verifier": each}) for each in JSONL}
    found |= {f"reasoning_gym: {each}": ("reasoning_gym", {"dataset": each}) for each in GYMS}
    found["hackmatrix"] = ("hackmatrix", {"size": 300, "eval_size": 100})
    for name in IN_TURNS:
        found[name] = (name, {"data": data} if "data" in accepted_arguments(class_of(name)) else {})
    return found


def measured(label: str, name: str, arguments: Mapping[str, Any], samples: int | None) -> dict[str, Any]:
    """What is found of one verifier."""
    task = make_task(name, arguments)
    if isinstance(task, DialogueTask):
        return as_data(validate_with_agents(task, ROLLOUTS)) | {"row": label}
    with Verifiers([task], 2) as verifiers:
        report = validate(task, verifiers, samples or (SLOW_SAMPLES if name in SLOW else SAMPLES))
    return report_data(report) | {"row": label}


def rate(found: Mapping[str, Any]) -> str:
    """`2 of 3,000: 0.07 % [0.02, 0.24]`."""
    if not found["count"]:
        return "none tried"
    ends = f"[{100 * found['low']:.2f}, {100 * found['high']:.2f}]"
    return f"{found['errors']:,} of {found['count']:,}: {100 * found['rate']:.2f} % {ends}"


def table(file: Path = RESULT) -> str:
    """The stored results as tables in Markdown: of verifiers of one answer, and of those in turns."""
    stored = json.loads(file.read_text(encoding="utf-8"))
    single = [each for each in stored if "kinds" in each]
    lines = [
        "| verifier | right answers refused | wrong answers paid | invalid | where it errs |\n|---|---|---|---|---|\n"
    ]
    for each in single:
        numbers = f"{rate(each['false_negatives'])} | {rate(each['false_positives'])} | {each['invalid']:,}"
        lines.append(f"| `{each['row']}` | {numbers} | {_errs(each)} |\n")
    lines.append(
        "\n| in turns | experts refused | lazy agents and cheaters paid | without a score |\n|---|---|---|---|\n"
    )
    for each in (each for each in stored if "agents" in each):
        numbers = f"{rate(each['false_negatives'])} | {rate(each['false_positives'])} | {each['invalid']:,}"
        lines.append(f"| `{each['row']}` | {numbers} |\n")
    return "".join(lines)


def _errs(report: Mapping[str, Any]) -> str:
    forms = [
        (form, found) for kind in report["kinds"].values() for form, found in kind["forms"].items() if found["errors"]
    ]
    worst = sorted(forms, key=lambda each: -each[1]["errors"])[:4]
    return "; ".join(f"{form}: {found['errors']:,} of {found['count']:,}" for form, found in worst)


def main() -> None:
    """Measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="ROW")
    parser.add_argument("--data", required=True)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    stored = {each["row"]: each for each in json.loads(options.out.read_text())} if options.out.is_file() else {}
    with tempfile.TemporaryDirectory() as made:
        write_sets(Path(options.data), Path(made))
        every = rows(options.data, made)
        for label in options.only or every:
            stored[label] = measured(label, *every[label], options.samples)
            found = stored[label]
            print(
                f"{label}: refused {rate(found['false_negatives'])}; paid {rate(found['false_positives'])}", flush=True
            )
            kept = [stored[each] for each in every if each in stored]
            options.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
