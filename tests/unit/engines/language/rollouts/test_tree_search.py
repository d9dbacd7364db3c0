"""Trees of rollouts: grown by their policies, valued by what was shown, recorded as episodes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import build_context
from operant.engines.language.generation.generator import Sampling
from operant.engines.language.rollouts.multi_turn import MultiTurnRollouts
from operant.engines.language.rollouts.tree_search import Search, Tree, parse_search, records
from operant.envs.text.dialogue import Dialogue, Message, Response
from operant.envs.text.guessing import Guess, Guesses
from operant.envs.text.task import Problem, Verdict
from operant.errors import UsageError
from operant.run.episode import Episode
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


class Steps(Guess):
    """Every turn earns by the length of what was said, and shows a score; four turns are the end."""

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        return Step(problem, self.turns, True)

    def resume(self, problem: Problem, seed: int, snapshot: bytes) -> Dialogue:
        step = Step(problem, self.turns, True)
        step.guessed = int(snapshot)
        return step


class Step(Guesses):
    def hear(self, text: str, cut: bool = False) -> Response:
        self.guessed += 1
        reward = len(text) / 10
        return Response((Message("user", str(self.guessed)),), reward=reward, score=reward, done=self.guessed >= 4)

    def verdict(self) -> Verdict:
        return Verdict(float(self.guessed), "partial")

    def snapshot(self) -> bytes:
        return str(self.guessed).encode()


def grown(search: Search) -> tuple[Tree, list[Episode]]:
    arguments = {"style": "bare", "numbers": 10, "turns": 8, "max_tokens": 4}
    env: dict[str, Any] = {"name": f"{__name__}:Steps", "max_frame": 1000, "text": {"arguments": arguments}}
    model = {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": 64}}
    agent = {"algorithm": {"name": "grpo", "group_size": 4, "batch_size": 16}, "model": model}
    with build_context(Spec.model_validate({"env": env, "agent": agent}), Seeds(3)) as context:
        (problem,) = context.sampler.held_out(1)
        multi_turn = context.worker.drivers[problem.task]
        assert isinstance(multi_turn, MultiTurnRollouts)
        tree = Tree(multi_turn, problem, search, Sampling(1, 1.0, seed=9))
        best = tree.grow()
        return tree, records(tree, best, 9, Progress())


def shape(tree: Tree) -> list[str]:
    return sorted(node.id for node in tree.nodes)


def test_best_of_n_begins_every_node_afresh_and_plays_it_to_the_end():
    tree, episodes = grown(Search("best_of_n", nodes=3))
    assert shape(tree) == ["root.0", "root.1", "root.2"]
    assert [episode.parent for episode in episodes[:-1]] == [None] * 3
    assert {episode.score for episode in episodes} == {4.0}


def test_breadth_first_fills_one_level_after_the_other():
    tree, episodes = grown(Search("bfs", nodes=20, width=2, depth=2))
    assert shape(tree) == ["root.0", "root.0.0", "root.0.1", "root.1", "root.1.0", "root.1.1"]
    by_id = {episode.id: episode for episode in episodes}
    child = next(episode for episode in episodes if episode.id and episode.id.endswith("root.1.0"))
    assert child.parent is not None
    assert by_id[child.parent].score == 1.0
    assert child.score == 2.0


def test_the_answer_is_the_whole_way_to_the_node_that_was_shown_to_earn_most():
    tree, episodes = grown(Search("bfs", nodes=14, width=2, depth=3))
    values = {node.id: node.value for node in tree.nodes}
    best = max(values, key=values.__getitem__)
    answer = episodes[-1]
    assert (answer.split, answer.parent) == ("eval", f"{answer.item}@9/{best}")
    assert sum(turn.reward or 0 for turn in answer.turns) == pytest.approx(values[best])
    assert all(episode.split == "search" for episode in episodes[:-1])


def test_ucb_spends_its_nodes_below_the_best_ones():
    tree, _ = grown(Search("ucb", nodes=12, width=3, exploration=0.0))
    assert len(tree.nodes) == 12
    greedy = max(tree.root.children, key=lambda node: node.visits)
    assert greedy.visits > 12 / 3
    assert max(node.depth for node in tree.nodes) > 1


def test_the_same_seed_grows_the_same_tree():
    first, again = (grown(Search("ucb", nodes=6))[1] for _ in range(2))
    assert [(one.id, [turn.text for turn in one.turns]) for one in first] == [
        (one.id, [turn.text for turn in one.turns]) for one in again
    ]


def test_searches_are_named_with_their_settings():
    assert parse_search("ucb:nodes=24,width=4,exploration=0.5") == Search("ucb", 24, 4, exploration=0.5)
    for wrong in ("ubc", "bfs:node=3", "bfs:nodes=many", "bfs:nodes=0"):
        with pytest.raises(UsageError):
            parse_search(wrong)
