from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from operant.report.episodes import Catalogue
from operant.report.trees import draw_tree, layout, tree_with, trees
from operant.run.episode import Episode
from operant.run.progress import Progress
from tests.unit.report.trajectories import search, write_rows


def node(name: str, parent: str | None, score: float | None = 0.0) -> Episode:
    ended = "error" if score is None else "terminated"
    return Episode("blotto", "eval", 0, Progress(), score, 1, ended, id=name, parent=parent)


def opened(tmp_path: Path, *episodes: Episode) -> Catalogue:
    return Catalogue.open(write_rows(tmp_path / "episodes.jsonl", [each.as_dict() for each in episodes]))


SMALL = (node("a", None, 0.1), node("b", "a", 0.5), node("c", "a", 0.3), node("d", "b", 0.2), node("e", "c", 0.9))


def test_nodes_come_branch_by_branch_with_their_depth(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *SMALL).entries)
    assert [(each.name, each.depth, each.parent) for each in tree.nodes] == [
        ("a", 0, None), ("b", 1, 0), ("d", 2, 1), ("c", 1, 0), ("e", 2, 3),
    ]  # fmt: skip


def test_the_path_to_the_best_goes_through_worse_nodes(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *SMALL).entries)
    assert [each.name for each in tree.chosen_path] == ["a", "c", "e"]
    assert tree.as_dict()["best"] == "e"
    assert [each["name"] for each in tree.as_dict()["nodes"] if each["chosen"]] == ["a", "c", "e"]


def test_a_negative_score_can_be_the_best_and_an_error_cannot(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, node("a", None, -0.5), node("b", "a", None), node("c", "a", -0.2)).entries)
    assert tree.best is not None
    assert tree.best.name == "c"
    (tree,) = trees(opened(tmp_path / "..", *(node(*each, None) for each in (("x", None), ("y", "x")))).entries)
    assert (tree.best, tree.chosen_path) == (None, ())


def test_leaves_stand_apart_and_parents_midway(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *SMALL).entries)
    assert layout(tree) == [(0.0, 0.5), (1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (2.0, 1.0)]


def test_drawn_in_lines_with_the_best_path_marked(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *SMALL).entries)
    assert draw_tree(tree) == [
        "blotto, frame 0",
        "  episode   score",
        "* a        0.1000",
        "  ├─ b     0.5000",
        "  │  └─ d  0.2000",
        "* └─ c     0.3000",
        "*    └─ e  0.9000",
    ]
    assert draw_tree(tree, unicode=False)[4] == "  |  `- d  0.2000"


def test_an_episode_alone_is_no_search(tmp_path: Path) -> None:
    catalogue = opened(tmp_path, node("a", None), node("b", None))
    assert trees(catalogue.entries) == []
    assert tree_with(catalogue.entries, catalogue.entries[0]) is None


def test_several_searches_in_one_file(tmp_path: Path) -> None:
    catalogue = opened(tmp_path, node("a", None), node("x", None), node("b", "a"), node("y", "x"))
    assert [[each.name for each in tree.nodes] for tree in trees(catalogue.entries)] == [["a", "b"], ["x", "y"]]
    found = tree_with(catalogue.entries, catalogue.find("y"))
    assert found is not None
    assert found.first.name == "x"


@pytest.mark.parametrize(
    ("episodes", "shape"),
    [
        ((node("b", "gone"), node("c", "b")), [["b", "c"]]),
        ((node("a", "b"), node("b", "a")), [["a", "b"]]),
        ((node("a", "a"), node("b", "a")), [["a", "b"]]),
        ((node("a", "a"),), []),
    ],
)
def test_parents_that_are_missing_or_go_in_a_circle(
    tmp_path: Path, episodes: tuple[Episode, ...], shape: list[list[str]]
) -> None:
    found = trees(opened(tmp_path, *episodes).entries)
    assert [[each.name for each in tree.nodes] for tree in found] == shape


def test_a_chain_of_thousands_is_no_trouble(tmp_path: Path) -> None:
    chain = [node(str(number), str(number - 1) if number else None, number / 1e4) for number in range(3000)]
    (tree,) = trees(opened(tmp_path, *chain).entries)
    assert (len(tree.chosen_path), layout(tree)[-1]) == (3000, (2999.0, 0.0))


def test_a_search_of_fifteen(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *search()).entries)
    assert [each.name for each in tree.chosen_path] == ["n0", "n3", "n6", "n9", "n12"]


def tried(name: str, parent: str | None, score: float, value: float) -> Episode:
    at = Progress(frames=64)
    return Episode("blotto", "search", 0, at, score, 1, "terminated", {"value": value}, id=name, parent=parent)


def answered(name: str, parent: str, score: float) -> Episode:
    return Episode("blotto", "eval", 0, Progress(frames=64), score, 1, "terminated", id=name, parent=parent)


FOREST = (
    tried("p@0/n1", None, 0.9, 0.1),
    tried("p@0/n2", None, 0.2, 0.4),
    tried("p@0/n3", "p@0/n2", 0.5, 0.7),
    answered("p@0", "p@0/n3", 0.5),
)


def test_branches_of_one_search_share_a_start_and_its_answer_is_the_chosen_one(tmp_path: Path) -> None:
    (tree,) = trees(opened(tmp_path, *FOREST).entries)
    assert draw_tree(tree) == [
        "blotto, frame 64",
        "  episode           score",
        "* start                 -",
        "  ├─ n1            0.9000  value 0.1",
        "* └─ n2            0.2000  value 0.4",
        "*    └─ n3         0.5000  value 0.7",
        "*       └─ answer  0.5000",
    ]
    assert tree.best is not None
    assert tree.answer is not None
    assert (tree.best.name, tree.answer.name) == ("n1", "p@0")
    assert [tree.as_dict()[key] for key in ("best", "answer")] == ["p@0/n1", "p@0"]


def test_independent_tries_are_a_search_too(tmp_path: Path) -> None:
    tries = [tried(f"p@0/n{number}", None, number / 10, 0.0) for number in range(4)]
    (tree,) = trees(opened(tmp_path, *tries, answered("p@0", "p@0/n2", 0.2)).entries)
    assert [each.name for each in tree.nodes] == ["start", "n0", "n1", "n2", "p@0", "n3"]
    assert [each.name for each in tree.chosen_path] == ["start", "n2", "p@0"]


def test_a_search_that_is_sat_again_later_is_another(tmp_path: Path) -> None:
    later = [replace(each, at=Progress(frames=128)) for each in FOREST]
    first, second = trees(opened(tmp_path, *FOREST, *later).entries)
    assert [len(tree.nodes) for tree in (first, second)] == [5, 5]
    assert [each.depth for each in first.nodes] == [each.depth for each in second.nodes]
    assert second.first.frames == 128
