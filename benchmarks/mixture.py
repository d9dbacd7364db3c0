"""The tables of SmolLM2 on six tasks at once, from `benchmarks/results/mixture_h200.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "mixture_h200.json"
ALGORITHMS = ("grpo", "sft")
EASY = {
    "long_sums": "arithmetic",
    "largest_of_many": "largest",
    "count_more_letters": "count_letters",
    "sort_many": "sort",
    "copy_more": "copy",
    "countdown_of_three": "countdown",
}
"""The hard form of each task, which is trained on last, and the easy form that training begins with."""


def _mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _interval(found: list[float]) -> str:
    point, low, high = found
    return f"{point:.3f} [{low:.3f}, {high:.3f}]"


def mixture(file: Path = RESULT) -> str:
    """Held-out accuracy of each task before and after: hard form, easy form, tasks never trained on."""
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    lines = ["| held-out problems | before | GRPO | SFT |", "|---|---|---|---|"]
    for hard in EASY:
        after = [_mean([one["final"][hard] for one in result[name]["sessions"]]) for name in ALGORITHMS]
        lines.append(f"| `{hard}` | {result['before']['hard'][hard]:.2f} | {' | '.join(after)} |")
    means = [_mean([one["score"] for one in result[name]["sessions"]]) for name in ALGORITHMS]
    lines.append(f"| **mean of the six** | {sum(result['before']['hard'].values()) / 6:.2f} | {' | '.join(means)} |")
    for kind, names in (("easy", EASY.values()), ("others", result["before"]["others"])):
        for name in names:
            told = [result[way][kind][name] for way in ("before", *ALGORITHMS)]
            label = f"`{name}`, easy form" if kind == "easy" else f"`{name}`, never trained on"
            lines.append(f"| {label} | {' | '.join(_interval(one) for one in told)} |")
    seconds = [_mean([one["seconds"] for one in result[name]["sessions"]]).replace(".000", "") for name in ALGORITHMS]
    tokens = [f"{sum(one['tokens'] for one in result[name]['sessions']) / 3e6:.2f} M" for name in ALGORITHMS]
    lines.append(f"| seconds, three seeds at once | | {' | '.join(seconds)} |")
    lines.append(f"| tokens written or imitated, a seed | | {' | '.join(tokens)} |")
    return "\n".join(lines)


def staleness(file: Path = RESULT) -> str:
    """Held-out accuracy on the way, for every run at a staleness that came to its end."""
    runs: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["stale"]
    lines = [
        "| staleness | correction | reached | accuracy at 6,656 / 12,800 / 19,456 / 25,600 completions | seconds |",
        "|---|---|---|---|---|",
    ]
    for name, sessions in runs.items():
        _, allowed, importance = name.split("_")
        for one in sessions:
            curve = " / ".join(f"{score:.3f}" for _, score in one["curve"][1:])
            lines.append(f"| {allowed} | {importance} | {one['staleness']:.2f} | {curve} | {one['seconds']:.0f} |")
    return "\n".join(lines)
