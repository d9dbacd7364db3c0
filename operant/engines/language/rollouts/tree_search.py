"""Tree search over rollouts: each node goes on from its parent's environment and transcript until it is validated.

A node is valued by what its turns were shown to earn, never by the hidden score; the search answers with the node of
the highest value, and only then is that node's hidden score its score. Best-of-n starts every node from the
beginning, breadth-first search (bfs) gives each node `width` children down to a `depth`, and ucb expands the nodes
that promise most (UCB1; Auer, Cesa-Bianchi and Fischer 2002).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from operant.engines.language.generation.generator import Sampling
from operant.engines.language.rollouts.multi_turn import MultiTurnRollouts
from operant.engines.language.rollouts.rollout import Origin, Rollout
from operant.envs.text.dialogue import DialogueTask
from operant.envs.text.task import Problem
from operant.errors import UsageError
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress

Policy = Literal["best_of_n", "bfs", "ucb"]


@dataclass(frozen=True)
class Search:
    """How a tree grows: at most `nodes` nodes of at most `turns` turns each (0 for the task's own limit).

    `width` is how many children a node of bfs and the root of ucb get, `depth` how deep bfs goes.
    """

    policy: Policy
    nodes: int = 12
    width: int = 3
    depth: int = 2
    turns: int = 0
    exploration: float = 1.4


SETTINGS: dict[str, type[int] | type[float]] = {
    "nodes": int,
    "width": int,
    "depth": int,
    "turns": int,
    "exploration": float,
}


def parse_search(text: str) -> Search:
    """A search as it is named on the command line: `ucb`, or with settings `ucb:nodes=24,width=4`."""
    name, _, rest = text.partition(":")
    if name not in CHOICES:
        raise UsageError(f"there is no search {name!r}", remedy=f"one of {', '.join(CHOICES)}, such as ucb:nodes=12")
    given: dict[str, float] = {}
    for setting in filter(None, rest.split(",")):
        key, _, value = setting.partition("=")
        try:
            given[key] = SETTINGS[key](value)
        except (KeyError, ValueError):
            likes = ", ".join(f"{key}={getattr(Search, key)}" for key in SETTINGS)
            raise UsageError(f"{setting!r} is no setting of a search", remedy=f"{name}:{likes}") from None
        if given[key] < (1 if key in ("nodes", "width", "depth") else 0):
            raise UsageError(f"a search with {setting} would find nothing", remedy=f"{key} of 1 or more")
    return Search(name, **given)  # pyright: ignore[reportArgumentType] (the table above has the kinds)


@dataclass
class Node:
    """A rollout and what has become of it; the root has none."""

    id: str
    parent: Node | None = None
    rollout: Rollout | None = None
    children: list[Node] = field(default_factory=list)
    visits: int = 0
    earned: float = 0.0

    @property
    def depth(self) -> int:
        """How many rollouts led here."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def value(self) -> float:
        """What all turns from the root to here were shown to earn; a node without a verdict is worth nothing."""
        if self.parent is None or self.rollout is None:
            return 0.0
        if self.rollout.verdict is None or self.rollout.verdict.score is None:
            return -math.inf
        return self.parent.value + sum(turn.reward or 0.0 for turn in self.rollout.turns)

    @property
    def origin(self) -> Origin | None:
        """Where children go on from: nothing for the root, whose children begin afresh."""
        rollout = self.rollout
        if rollout is None or rollout.snapshot is None or rollout.transcript is None:
            return None
        return Origin(rollout.snapshot, rollout.transcript)

    @property
    def open(self) -> bool:
        """Whether it can have children."""
        return self.parent is None or self.origin is not None

    def path(self) -> list[Node]:
        """The nodes from the first rollout to this one."""
        return [] if self.parent is None else [*self.parent.path(), self]


class Tree:
    """The search for a good answer to one problem (final)."""

    def __init__(self, multi_turn: MultiTurnRollouts, problem: Problem, search: Search, sampling: Sampling) -> None:
        self.multi_turn = multi_turn
        self.problem = problem
        self.search = search
        self.sampling = sampling
        self.root = Node("root")
        self.nodes: list[Node] = []

    def grow(self) -> Node:
        """Roll out until the nodes are spent; returns the best one."""
        choose = CHOICES[self.search.policy]
        while len(self.nodes) < self.search.nodes:
            parents = choose(self)[: self.search.nodes - len(self.nodes)]
            if not parents:
                break
            self._expand(parents)
        return max(self.nodes, key=lambda node: node.value)

    def _expand(self, parents: Sequence[Node]) -> None:
        """Give each of the parents one more child."""
        task = self.multi_turn.tasks[self.problem.task]
        fresh = []
        for parent in parents:
            node = Node(f"{parent.id}.{len(parent.children)}", parent)
            parent.children.append(node)
            node.rollout = self._rollout(task, node)
            self.nodes.append(node)
            fresh.append(node)
        self.multi_turn.run([node.rollout for node in fresh if node.rollout is not None], self.sampling)
        for node in fresh:
            _learn(node)

    def _rollout(self, task: DialogueTask, node: Node) -> Rollout:
        number = len(self.nodes)
        most = self.search.turns or self.multi_turn.settings.turns or task.turns
        whole = self.search.policy == "best_of_n"
        origin = node.parent.origin if node.parent else None
        return Rollout(self.problem, task, 0, number, number, most, origin, pauses=not whole)


def _learn(node: Node) -> None:
    """Let all nodes above know what came of a node."""
    value = max(node.value, -1.0)
    above: Node | None = node
    while above is not None:
        above.visits += 1
        above.earned += value
        above = above.parent


def _independent(tree: Tree) -> list[Node]:
    return [tree.root] * tree.search.nodes


def _breadth_first(tree: Tree) -> list[Node]:
    """The shallowest nodes that lack children."""
    lacking = [
        node
        for node in (tree.root, *tree.nodes)
        if node.open and node.depth < tree.search.depth and len(node.children) < tree.search.width
    ]
    level = min((node.depth for node in lacking), default=0)
    return [node for node in lacking if node.depth == level for _ in range(tree.search.width - len(node.children))]


def _most_promising(tree: Tree) -> list[Node]:
    """The node with the highest upper confidence bound; first the root gets its width of children."""
    root = tree.root
    if len(root.children) < tree.search.width:
        return [root] * (tree.search.width - len(root.children))
    total = len(tree.nodes) + 1

    def bound(node: Node) -> float:
        mean = node.earned / node.visits
        return mean + tree.search.exploration * math.sqrt(math.log(total) / node.visits)

    candidates = [node for node in (root, *tree.nodes) if node.open and node.visits]
    return [max(candidates, key=bound)] if candidates else []


CHOICES: dict[Policy, Callable[[Tree], list[Node]]] = {
    "best_of_n": _independent,
    "bfs": _breadth_first,
    "ucb": _most_promising,
}


def records(tree: Tree, best: Node, seed: int, at: Progress) -> list[Episode]:
    """An episode for every node, and last the answer: the whole way to the best node, with its hidden score."""
    name = f"{tree.problem.id}@{seed}"
    episodes = [_record(tree, node, node.rollout.turns if node.rollout else [], seed, at, name) for node in tree.nodes]
    way = [turn for node in best.path() if node.rollout is not None for turn in node.rollout.turns]
    answer = replace(_record(tree, best, way, seed, at, name), split="eval", id=name, parent=f"{name}/{best.id}")
    return [*episodes, answer]


def _record(tree: Tree, node: Node, turns: Sequence[Turn], seed: int, at: Progress, name: str) -> Episode:
    rollout = node.rollout
    assert rollout is not None, "only the root has no rollout"
    assert rollout.verdict is not None, "every rollout comes to a verdict"
    verdict, parent = rollout.verdict, node.parent
    failed = verdict.score is None
    return Episode(
        env=tree.problem.task,
        split="search",
        seed=tree.problem.seed_or(seed),
        at=at,
        score=verdict.score,
        length=sum(turn.tokens for turn in turns),
        ended="error" if failed else "truncated" if rollout.cut else "terminated",
        parts={**verdict.parts, **({} if failed else {"value": node.value, "visits": float(node.visits)})},
        turns=tuple(turns),
        error=verdict.note if failed else None,
        item=tree.problem.id,
        id=f"{name}/{node.id}",
        parent=f"{name}/{parent.id}" if parent is not None and parent.rollout is not None else None,
        version=min((step.completion.version for step in rollout.steps), default=None),
        took=round(rollout.took, 4),
    )
