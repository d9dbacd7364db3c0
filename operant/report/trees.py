"""Search trees: episodes that continue others, with the path that the search, or hindsight, chose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from operant.report.episodes import Entry
from operant.report.formatting import columns
from operant.report.formatting import score as score_text

CHOSEN = "*"
SEARCH = "search"
START, ANSWER = "start", "answer"
Key = tuple[str, str]


@dataclass(frozen=True)
class Node:
    """An episode in a tree: its place among the nodes, its parent's, and whether it is its parent's last child.

    The beginning that several episodes share, and which was not played by itself, is a node without an episode.
    """

    entry: Entry | None
    place: int
    parent: int | None
    depth: int
    is_last: bool

    @property
    def name(self) -> str:
        """What identifies it within its tree."""
        return START if self.entry is None else self.entry.name.rpartition("/")[2]

    @property
    def score(self) -> float | None:
        """The score of its episode."""
        return None if self.entry is None else self.entry.score


@dataclass(frozen=True)
class Tree:
    """A search; `nodes` has parents before their children, branch by branch."""

    nodes: tuple[Node, ...]

    @property
    def root(self) -> Node:
        """Where it began."""
        return self.nodes[0]

    @property
    def first(self) -> Entry:
        """Its first episode."""
        return next(node.entry for node in self.nodes if node.entry is not None)

    @cached_property
    def answer(self) -> Node | None:
        """The episode that the search gave as its answer: the one that is not part of the searching."""
        splits = {node.entry.split for node in self.nodes if node.entry}
        played = [node for node in self.nodes if node.entry and node.entry.split != SEARCH]
        return played[-1] if SEARCH in splits and played else None

    @cached_property
    def best(self) -> Node | None:
        """The node with the highest score, of equals the first in the file; None where nothing was scored."""
        scored = [node for node in self.nodes if node.entry and node.entry.score is not None]
        return max(scored, key=lambda node: (node.score or 0.0, -(node.entry.line if node.entry else 0)), default=None)

    @cached_property
    def chosen_path(self) -> tuple[Node, ...]:
        """From the root to the answer, which is not always the best node; where there is none, to the best."""
        end = self.answer or self.best
        return () if end is None else self.path_to(end)

    def name_of(self, node: Node) -> str:
        """What a node is called in a picture."""
        return ANSWER if node is self.answer else node.name

    def path_to(self, node: Node) -> tuple[Node, ...]:
        """From the root to a node."""
        path = [node]
        while path[-1].parent is not None:
            path.append(self.nodes[path[-1].parent])
        return tuple(reversed(path))

    def place_of(self, entry: Entry | None) -> int | None:
        """The place of an episode's node."""
        return None if entry is None else next((node.place for node in self.nodes if node.entry is entry), None)

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`: nodes with parent, score and whether they are on the chosen path."""
        path = {node.place for node in self.chosen_path}
        nodes = [
            {
                "name": node.entry.name if node.entry else START,
                "parent": node.entry.parent if node.entry else None,
                "depth": node.depth,
                "score": node.score,
                "chosen": node.place in path,
            }
            for node in self.nodes
        ]
        ends = {"best": self.best, "answer": self.answer}
        names = {key: node.entry.name if node and node.entry else None for key, node in ends.items()}
        return {"task": self.first.env, "item": self.first.item, **names, "nodes": nodes}


def trees(entries: Sequence[Entry]) -> list[Tree]:
    """The searches among episodes, in the order of their beginnings. An episode alone is no search.

    A parent that is not among the episodes makes its child a beginning; of a circle of parents the first one is.
    Beginnings of one search (its split is "search", and names before the last `/` are equal) share a start.
    """
    children: dict[Key, list[Entry]] = {}
    for entry in entries:
        if entry.parent is not None:
            children.setdefault((entry.label, entry.parent), []).append(entry)
    involved = [entry for entry in entries if entry.split == SEARCH or _key(entry) in children]
    known = {_key(entry) for entry in involved}
    reached: set[Key] = set()
    beginnings = [entry for entry in involved if (entry.label, entry.parent or "") not in known]
    grown = [_grown(group, children, reached) for group in _searches(beginnings)]
    circles = [_grown([entry], children, reached) for entry in involved if _key(entry) not in reached]
    return [tree for tree in [*grown, *circles] if len(tree.nodes) > 1]


def tree_with(entries: Sequence[Entry], wanted: Entry) -> Tree | None:
    """The search that an episode is part of."""
    return next((tree for tree in trees(entries) if tree.place_of(wanted) is not None), None)


def _key(entry: Entry) -> Key:
    return entry.label, entry.name


def _searches(beginnings: Iterable[Entry]) -> list[list[Entry]]:
    """Beginnings by the search that they belong to."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in beginnings:
        family = entry.name.rpartition("/")[0] if entry.split == SEARCH else ""
        key = (entry.label, family, entry.frames, entry.updates) if family else _key(entry)
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _grown(beginnings: Sequence[Entry], children: Mapping[Key, list[Entry]], reached: set[Key]) -> Tree:
    """All that is below some beginnings, without recursion: a long chain is deep. What was reached is left out."""
    nodes: list[Node] = []
    if len(beginnings) > 1:
        nodes.append(Node(None, 0, None, 0, True))
    start = 0 if nodes else None
    waiting = [(entry, start, entry is beginnings[-1]) for entry in reversed(beginnings)]
    while waiting:
        entry, parent, is_last = waiting.pop()
        if _key(entry) in reached:
            continue
        reached.add(_key(entry))
        place = len(nodes)
        nodes.append(Node(entry, place, parent, 0 if parent is None else nodes[parent].depth + 1, is_last))
        below = children.get(_key(entry), [])
        waiting += [(child, place, child is below[-1]) for child in reversed(below)]
    return Tree(tuple(nodes))


def layout(tree: Tree) -> list[tuple[float, float]]:
    """Depth and height of each node: leaves stand on whole numbers from 0, parents midway between their children."""
    heights = [0.0] * len(tree.nodes)
    children: dict[int, list[int]] = {}
    for node in tree.nodes[1:]:
        children.setdefault(node.parent or 0, []).append(node.place)
    leaves = [node.place for node in tree.nodes if node.place not in children]
    for number, place in enumerate(leaves):
        heights[place] = float(number)
    for place in sorted(children, reverse=True):
        heights[place] = sum(heights[child] for child in children[place]) / len(children[place])
    return [(float(node.depth), heights[node.place]) for node in tree.nodes]


def draw_tree(tree: Tree, unicode: bool = True) -> list[str]:
    """The tree as indented lines with scores; a star marks the path to the answer, or else to the best node."""
    fork, last, bar = ("├─ ", "└─ ", "│  ") if unicode else ("|- ", "`- ", "|  ")
    chosen = {node.place for node in tree.chosen_path}
    rows = []
    for node in tree.nodes:
        stem = "".join("   " if each.is_last else bar for each in tree.path_to(node)[1:-1])
        branch = "" if node.parent is None else last if node.is_last else fork
        mark = CHOSEN if node.place in chosen else " "
        rows.append([f"{mark} {stem}{branch}{tree.name_of(node)}", score_text(node.score), _about(node)])
    first = tree.first
    title = ", ".join(part for part in (first.env, first.item, f"frame {first.frames:,}") if part)
    return [title, *columns([["  episode", "score", ""], *rows], right={1})]


def _about(node: Node) -> str:
    entry = node.entry
    if entry is None:
        return ""
    facts = [
        f"{entry.turns} turn{'s' * (entry.turns != 1)}" if entry.turns else "",
        f"{entry.faults} fault{'s' * (entry.faults > 1)}" if entry.faults else "",
        f"value {entry.parts['value']:g}" if "value" in entry.parts else "",
        f"error: {entry.error}" if entry.error else "",
    ]
    return ", ".join(fact for fact in facts if fact)
