"""Episodes for the page: lists with filters, one as a timeline, two side by side, trees, histories."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from operant.errors import UsageError
from operant.report.episodes import Catalogue, Entry, newest_first
from operant.report.filters import NEWEST, ORDERS, Filter, Range, select, values_of
from operant.report.formatting import compact, duration
from operant.report.formatting import score as score_text
from operant.report.history import AXES, Axis, histories
from operant.report.stats import quick_interval
from operant.report.timeline import Step, parting, same_opening, same_words, side_by_side, steps, totals
from operant.report.trees import Node, Tree, layout, tree_with, trees
from operant.run.episode import Episode, Turn

MOST_ROWS = 500
MOST_CHOICES = 1000  # a longer list would be slow to send, and nobody reads it
MOST_CATALOGUES = 16


class Catalogues:
    """The catalogues of the runs that were looked at last (final)."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Catalogue] = OrderedDict()
        self._turn = threading.Lock()

    def open(self, path: Path) -> Catalogue:
        """The catalogue of a run, up to date; only what is new is read."""
        with self._turn:
            catalogue = self._kept.setdefault(path, Catalogue(path))
            self._kept.move_to_end(path)
            while len(self._kept) > MOST_CATALOGUES:
                self._kept.popitem(last=False)
        catalogue.refresh()
        return catalogue


def episode_list(catalogue: Catalogue, query: Mapping[str, str]) -> dict[str, Any]:
    """Episodes that fit the filters of a query, at most `MOST_ROWS`, with totals over all that fit."""
    entries = catalogue.entries
    found = select(catalogue, _filter(query), query.get("order") or NEWEST)
    return {
        "count": len(entries),
        "matching": len(found),
        "damaged": catalogue.damaged,
        "totals": _totals(found),
        "values": values_of(entries),
        "scores": _span([entry.score for entry in entries]),
        "versions": _span([entry.version for entry in entries]),
        "orders": [NEWEST, *ORDERS],
        "rows": [_row(catalogue, entry) for entry in found[:MOST_ROWS]],
    }


def timeline(catalogue: Catalogue, name: str | None) -> dict[str, Any]:
    """One episode in full, the newest without a name, with the ways from it to others."""
    entries = catalogue.entries
    if not entries:
        raise UsageError("no episode was written here yet")
    entry = _found(catalogue, name) if name else entries[-1]
    number = next(number for number, each in enumerate(entries) if each is entry)
    beside = [entries[at] if 0 <= at < len(entries) else None for at in (number - 1, number + 1)]
    others = [each for each in newest_first(entries) if each.env == entry.env and each is not entry]
    return {
        **_episode(catalogue, entry),
        "previous": catalogue.name_of(beside[0]) if beside[0] else None,
        "next": catalogue.name_of(beside[1]) if beside[1] else None,
        "in_tree": tree_with(entries, entry) is not None,
        "alike": [catalogue.name_of(each) for each in others[:MOST_CHOICES]],
    }


def _found(catalogue: Catalogue, name: str) -> Entry:
    """The episode of a name, or at a line of a file (`trial_000/session_0/episodes.jsonl@12`)."""
    place, _, line = name.rpartition("@")
    for file in catalogue.files.values():
        if line.isdecimal() and file.path == catalogue.path / place:
            found = [entry for entry in file.entries if entry.line == int(line)]
            if found:
                return found[0]
    return catalogue.find(name)


def comparison(catalogue: Catalogue, first: str, second: str) -> dict[str, Any]:
    """Two episodes, turn beside turn, and where they part."""
    sides = [catalogue.find(name) for name in (first, second)]
    left, right = (catalogue.read(entry) for entry in sides)
    return {
        "sides": [_episode(catalogue, entry) for entry in sides],
        "parting": parting(left, right),
        "rows": [
            {
                "left": _step(pair[0]),
                "right": _step(pair[1]),
                "same_opening": same_opening(*pair),
                "same_words": same_words(*pair),
            }
            for pair in side_by_side(left, right)
        ],
    }


def names(catalogue: Catalogue) -> list[str]:
    """The newest episodes by name."""
    return catalogue.latest_names(MOST_CHOICES)


def tree_details(catalogue: Catalogue, name: str | None) -> dict[str, Any]:
    """The search tree that has the named episode, or the first; `nodes` is empty where there is none."""
    found = trees(catalogue.entries)
    chosen = catalogue.find(name) if name else None
    if not found:
        return {"nodes": [], "trees": []}
    tree = next((each for each in found if each.place_of(chosen) is not None), found[0])
    at = tree.place_of(chosen)
    end = tree.chosen_path[-1].place if at is None and tree.chosen_path else at
    path = {node.place for node in tree.chosen_path}
    return {
        "trees": [catalogue.name_of(each.first) for each in found],
        "tree": catalogue.name_of(tree.first),
        "task": tree.first.env,
        "item": tree.first.item,
        "answer": score_text(tree.answer.score) if tree.answer else None,
        "best": score_text(tree.best.score if tree.best else None),
        "chosen": end,
        "nodes": [
            _node(catalogue, tree, node, spot, node.place in path)
            for node, spot in zip(tree.nodes, layout(tree), strict=True)
        ],
    }


def history(catalogue: Catalogue, axis: str) -> dict[str, Any]:
    """The score of each task over training, with intervals."""
    if axis not in AXES:
        raise UsageError(f"there is no axis {axis!r}", remedy=", ".join(AXES))
    return {
        "axes": list(AXES),
        "histories": [each.as_dict() for each in histories(catalogue.entries, cast(Axis, axis))],
    }


def _filter(query: Mapping[str, str]) -> Filter:
    def text(key: str) -> str | None:
        return query.get(key) or None

    return Filter(
        task=text("task"),
        item=text("item"),
        split=text("split"),
        ended=text("ended"),
        score=Range.parse(query["score"], "score") if query.get("score") else Range(),
        version=Range.parse(query["version"], "version") if query.get("version") else Range(),
        text=text("text"),
        faulty=bool(query.get("faulty")),
        failed=bool(query.get("failed")),
    )


def _totals(found: Sequence[Entry]) -> dict[str, str]:
    scores = [entry.score for entry in found if entry.score is not None]
    faulty = sum(entry.faults > 0 for entry in found)
    return {
        "episodes": f"{len(found):,}",
        "mean score over episodes": quick_interval(scores).text(3) if scores else "-",
        "with faults": f"{faulty / len(found):.0%}" if found else "-",
        "errors": f"{sum(entry.ended == 'error' for entry in found):,}",
        "tokens written": compact(sum(entry.tokens for entry in found)),
        "time": duration(sum(entry.took or 0.0 for entry in found)),
    }


def _span(values: Sequence[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return [min(known), max(known)] if known else None


def _row(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    return {
        "name": catalogue.name_of(entry),
        "task": entry.env,
        "item": entry.item,
        "split": entry.split,
        "version": entry.version,
        "frames": entry.frames,
        "updates": entry.updates,
        "score": entry.score,
        "turns": entry.turns or entry.length,
        "tokens": entry.tokens,
        "seconds": entry.took,
        "faults": entry.faults,
        "ended": entry.ended,
        "error": entry.error,
        "parts": dict(entry.parts),
    }


def _episode(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    episode = catalogue.read(entry)
    return {
        "name": catalogue.name_of(entry),
        "task": entry.env,
        "about": _about(episode),
        "tiles": _tiles(episode),
        "parts": episode.parts,
        "error": episode.error,
        "steps": [_step(step) for step in steps(episode)],
    }


def _about(episode: Episode) -> list[str]:
    """Item, split, policy and the moment of training."""
    facts = [
        f"item {episode.item}" if episode.item else "",
        episode.split,
        f"policy version {episode.version}" if episode.version is not None else "",
        f"frame {episode.at.frames:,}, update {episode.at.updates:,}",
        f"seed {episode.seed}" if episode.seed is not None else "",
        f"continues {episode.parent}" if episode.parent else "",
        episode.ended,
    ]
    return [fact for fact in facts if fact]


def _tiles(episode: Episode) -> dict[str, str]:
    found = totals(episode)
    return {
        "score": score_text(episode.score),
        "reward": "-" if found.reward is None else f"{found.reward:+.3g}",
        "turns": f"{found.turns:,}" if episode.turns else f"{episode.length:,}",
        "tokens out / in": f"{found.written:,} / {found.read or '-'}",
        "faults": f"{found.faults:,}",
        "time": "-" if found.seconds is None else duration(found.seconds),
    }


def _step(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "number": step.number,
        "said": step.said is not None,
        "tool": step.tool,
        "reward": step.reward,
        "score": None if step.score is None else score_text(step.score),
        "fault": step.fault,
        "tokens": step.tokens,
        "read": step.read,
        "seconds": step.seconds,
        "time": None if step.seconds is None else duration(step.seconds),
        "total": step.total,
        "turns": [_turn(turn) for turn in step.turns],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    who = f"{turn.role} · {turn.tool}" if turn.role == "tool" and turn.tool else turn.role
    return {"role": turn.role, "who": who, "text": turn.text, "tokens": turn.tokens, "reward": turn.reward}


def _node(catalogue: Catalogue, tree: Tree, node: Node, spot: tuple[float, float], on_path: bool) -> dict[str, Any]:
    entry = node.entry
    return {
        "place": node.place,
        "parent": node.parent,
        "x": spot[0],
        "y": spot[1],
        "label": tree.name_of(node),
        "name": catalogue.name_of(entry) if entry else None,
        "score": node.score,
        "text": "error" if entry and entry.score is None else "" if node.score is None else f"{node.score:.3g}",
        "failed": entry is not None and entry.ended == "error",
        "is_best": tree.best is not None and tree.best.place == node.place,
        "on_path": on_path,
        "about": _hint(entry),
    }


def _hint(entry: Entry | None) -> str:
    """What is shown of a node under the pointer."""
    if entry is None:
        return "where every branch began"
    value = [f"value {entry.parts['value']:g}"] if "value" in entry.parts else []
    facts = [entry.name, f"score {score_text(entry.score)}", *value, f"{entry.turns} turns, {entry.faults} faults"]
    return "\n".join([*facts, *([entry.error] if entry.error else [])])
