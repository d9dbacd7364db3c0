"""Search trees: episodes that go on from the end of others, with the path to the best of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from operant.report.episodes import Entry
from operant.report.words import columns
from operant.report.words import score as score_text

BEST = "*"
Key = tuple[str, str]


@dataclass(frozen=True)
class Node:
    """An episode in a tree: its place among the nodes, its parent's, and whether it is its parent's last child."""

    entry: Entry
    place: int
    parent: int | None
    depth: int
    is_last: bool


@dataclass(frozen=True)
class Tree:
    """A search that began at one episode; `nodes` has parents before their children, branch by branch."""

    nodes: tuple[Node, ...]

    @property
    def root(self) -> Node:
        """Where it began."""
        return self.nodes[0]

    @cached_property
    def best(self) -> Node | None:
        """The node with the highest score, of equals the first in the file; None where nothing was scored."""
        scored = [node for node in self.nodes if node.entry.score is not None]
        return max(scored, key=lambda node: (node.entry.score or 0.0, -node.entry.line), default=None)

    @cached_property
    def best_path(self) -> tuple[Node, ...]:
        """From the root to the best node."""
        return () if self.best is None else self.path_to(self.best)

    def as_dict(self) -> dict[str, Any]:
        """The same for `--json`: nodes with parent, score and whether they are on the best path."""
        path = {node.place for node in self.best_path}
        nodes = [
            {
                "name": node.entry.name,
                "parent": node.entry.parent,
                "depth": node.depth,
                "score": node.entry.score,
                "on_best_path": node.place in path,
            }
            for node in self.nodes
        ]
        return {"task": self.root.entry.env, "best": self.best.entry.name if self.best else None, "nodes": nodes}

    def path_to(self, node: Node) -> tuple[Node, ...]:
        """From the root to a node."""
        path = [node]
        while path[-1].parent is not None:
            path.append(self.nodes[path[-1].parent])
        return tuple(reversed(path))


def trees(entries: Sequence[Entry]) -> list[Tree]:
    """The searches among episodes, in the order of their roots. An episode alone is no search.

    A parent that is not among the episodes makes its child a root; of a circle of parents the first one is.
    """
    children: dict[Key, list[Entry]] = {}
    for entry in entries:
        if entry.parent is not None:
            children.setdefault((entry.label, entry.parent), []).append(entry)
    parents = [entry for entry in entries if (entry.label, entry.name) in children] if children else []
    known = {(entry.label, entry.name) for entry in parents}
    roots = [entry for entry in parents if (entry.label, entry.parent or "") not in known]
    reached: set[Key] = set()
    grown = [_grown(entry, children, reached) for entry in roots]
    circles = [_grown(entry, children, reached) for entry in parents if (entry.label, entry.name) not in reached]
    return [tree for tree in [*grown, *circles] if len(tree.nodes) > 1]


def tree_with(entries: Sequence[Entry], wanted: Entry) -> Tree | None:
    """The search that an episode is part of."""
    return next((tree for tree in trees(entries) if any(node.entry is wanted for node in tree.nodes)), None)


def _grown(root: Entry, children: Mapping[Key, list[Entry]], reached: set[Key]) -> Tree:
    """All that is below a root, without recursion: a long chain is deep. What was reached before is left out."""
    nodes: list[Node] = []
    waiting: list[tuple[Entry, int | None, bool]] = [(root, None, True)]
    while waiting:
        entry, parent, is_last = waiting.pop()
        key = (entry.label, entry.name)
        if key in reached:
            continue
        reached.add(key)
        place = len(nodes)
        nodes.append(Node(entry, place, parent, 0 if parent is None else nodes[parent].depth + 1, is_last))
        below = children.get(key, [])
        waiting += [(child, place, child is below[-1]) for child in reversed(below)]
    return Tree(tuple(nodes))


def layout(tree: Tree) -> list[tuple[float, float]]:
    """Depth and height of each node: leaves stand on whole numbers from 0, parents midway between their children."""
    heights: list[float | None] = [None] * len(tree.nodes)
    children: dict[int, list[int]] = {}
    for node in tree.nodes[1:]:
        children.setdefault(node.parent or 0, []).append(node.place)
    leaves = [node.place for node in tree.nodes if node.place not in children]
    for number, place in enumerate(leaves):
        heights[place] = float(number)
    for place in sorted(children, reverse=True):
        heights[place] = sum(heights[child] or 0.0 for child in children[place]) / len(children[place])
    return [(float(node.depth), heights[node.place] or 0.0) for node in tree.nodes]


def draw_tree(tree: Tree, unicode: bool = True) -> list[str]:
    """The tree as indented lines with scores; a star marks the path to the best node."""
    fork, last, bar = ("├─ ", "└─ ", "│  ") if unicode else ("|- ", "`- ", "|  ")
    best = {node.place for node in tree.best_path}
    rows = []
    for node in tree.nodes:
        above = tree.path_to(node)[1:-1]
        stem = "".join("   " if each.is_last else bar for each in above)
        branch = "" if node.parent is None else last if node.is_last else fork
        mark = BEST if node.place in best else " "
        rows.append([f"{mark} {stem}{branch}{node.entry.name}", score_text(node.entry.score), _about(node.entry)])
    return columns([["  episode", "score", ""], *rows], right={1})


def _about(entry: Entry) -> str:
    faults = f"{entry.faults} fault{'s' * (entry.faults > 1)}" if entry.faults else ""
    error = f"error: {entry.error}" if entry.error else ""
    turns = f"{entry.turns} turn{'s' * (entry.turns != 1)}" if entry.turns else ""
    return ", ".join(part for part in (turns, faults, error) if part)
