"""Rollouts come back from disk bit for bit, and those of weights that will not come again are forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from operant.engines.language.generation.generator import Completion, Prompt, Step
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.task import Problem, TreeNode, Verdict
from operant.run.episode import Turn

PROBLEM = Problem("p/1", "p", "1 + 1", "2", max_tokens=4)
TURNS = (Turn("user", "hi", 2), Turn("assistant", "\x85 a", 2, reward=0.5, seconds=0.25, ids=(4, 5)))


def group(place: int) -> Group:
    mask = SamplingMask.of(np.array([[3, 1], [7, 0]], dtype=np.uint8))
    first = Completion((4, 5), (-0.1, float(np.float32(-1 / 3))), "ab", "stop", 3, mask)
    steps = (Step((1, 2), first), Step((1, 2, 4, 5, 9), Completion((6,), (-2.0,), "c", "length", 4)))
    tree = Verdict(0.5, "partial", {"x": 1.0}, "note", (TreeNode("0", None, Verdict(1.0, "right"), TURNS, 0.5, True),))
    answer = Answer(steps, tree, 0.75, TURNS, True, True, 1.5)
    plain = Answer((Step((1, 2), first),), Verdict(0.0, "wrong"), 0.0)
    return Group(PROBLEM, Prompt((1, 2), 4, ("\n",)), (answer, plain), ("late",), place, (7, 8), ("timeout",))


def test_a_group_comes_back_as_it_was(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path / "rollouts")
    assert store.read(3, PROBLEM) is None
    store.write_rollout(3, 0, {"after": 0})
    store.write(group(3), after=0)
    assert store.read(3, PROBLEM) == group(3)
    assert store.read_rollout(3, 0) is None, "the group stands in for its rollouts"


def test_a_file_that_was_cut_is_as_if_it_were_absent(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    store.write(group(3), after=0)
    whole = (tmp_path / "3.json").read_bytes()
    (tmp_path / "3.json").write_bytes(whole[: len(whole) // 2])
    assert store.read(3, PROBLEM) is None


def test_what_a_checkpoint_covers_is_forgotten(tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    for place in range(6):
        store.write(group(place), after=0)
    store.retain(lambda place: place >= 5 or place == 2)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["2", "5"]


def test_rollouts_of_weights_that_will_not_come_again_are_forgotten(tmp_path: Path) -> None:
    """The weights after prompt 5 were made by prompts 4 and 5; without 5 the resumed run makes others."""
    store = RolloutStore(tmp_path)
    store.write(group(4), after=4)
    store.write(group(6), after=4)
    store.write(group(7), after=6)
    store.write_rollout(8, 1, {"after": 6})
    store.check_lineage([4], 5)
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["4", "6"]


def test_a_group_of_rollouts_that_later_weights_began_goes_with_those_weights(tmp_path: Path) -> None:
    """A resumed run began at 4 and finished rollouts that the weights after prompt 5 had begun before the crash."""
    store = RolloutStore(tmp_path)
    store.write_rollout(8, 0, {"after": 6})
    store.write(group(8), after=4)
    store.check_lineage([4], 5)
    assert not list(tmp_path.iterdir())
