"""What an agent did in all rollouts of a run: its actions by form, and its first, best and last transcript.

    python -m benchmarks.transcripts runs/blotto_0/*/trial_000/session_0 --json transcripts.json

Numbers in an action are written N, so that one line stands for all plans of a form. Forms that occurred less often than
once in a thousand rollouts are kept apart: attempts at cheating are rare before they are learnt.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from operant.run.layout import EPISODES_FILE
from operant.run.metrics import read_rows

COMMON = 1000
"""A form is rare below one occurrence in so many rollouts."""


def actions(rollout: dict[str, Any]) -> list[str]:
    """What the agent wrote, turn by turn."""
    return [turn["text"].strip() for turn in rollout["turns"] if turn["role"] == "assistant"]


def transcript(rollout: dict[str, Any]) -> dict[str, Any]:
    """When a rollout was played, what the agent wrote, and its score."""
    return {
        "rollouts_before": rollout["episodes"],
        "problem": rollout["item"],
        "actions": actions(rollout),
        "score": round(rollout["score"], 4),
    }


def summarize(session: Path) -> dict[str, Any]:
    """Actions of all rollouts of a session, and three transcripts of its held-out ones."""
    forms: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    held_out: list[dict[str, Any]] = []
    for rollout in read_rows(session / EPISODES_FILE):
        facts["rollouts"] += 1
        facts.update(name for name in ("faults", "tool_errors", "reopened", "inherited") if rollout["parts"].get(name))
        forms.update(re.sub(r"\d+", "N", action) for action in actions(rollout))
        if rollout["split"] == "eval":
            held_out.append(transcript(rollout))
    common = {form: count for form, count in forms.most_common() if count * COMMON >= facts["rollouts"]}
    return {
        "session": session.as_posix(),
        "rollouts_with": dict(facts),
        "common_forms": common,
        "rare_forms": {form: count for form, count in forms.most_common() if form not in common},
        "first": held_out[0],
        "best": max(held_out, key=lambda each: each["score"]),
        "last": held_out[-1],
    }


def main() -> None:
    """Print the summary of every session that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="+", type=Path)
    parser.add_argument("--json", type=Path, help="write the summaries to this file")
    chosen = parser.parse_args()
    result = [summarize(session) for session in chosen.sessions]
    for each in result:
        print(f"{each['session']}: {each['rollouts_with']}")
        for form, count in each["common_forms"].items():
            print(f"  {count:7,}  {form}")
        rare = each["rare_forms"]
        print(f"  {sum(rare.values()):7,}  of {len(rare)} rare forms: {list(rare)[:8]}")
        for name in ("first", "best", "last"):
            print(f"  {name}: {'; '.join(each[name]['actions'])}: {each[name]['score']}")
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
