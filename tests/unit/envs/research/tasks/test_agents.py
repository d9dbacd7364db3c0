"""Every task played by its scripted agents in real sandboxes: experts, lazy ones, novices and cheaters.

The quick tests play a task's own tricks, and what every task must withstand with a few tasks; the slow ones everything.
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from operant.envs.research.catalogue import SHIPPED, shipped
from operant.envs.research.folder import load_folder
from operant.envs.research.kit.scripts import bash, write
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Played, play_script
from tests.processes import marked, wait_until

DATA_TASKS = ("titanic", "diamonds", "fashion_mnist")
LAB_TASKS = ("lab_cartpole", "lab_acrobot")
OTHERS = tuple(name for name in shipped() if name not in (*DATA_TASKS, *LAB_TASKS))
# Of what every task tries, these are quick to play and stand for their kind.
COMMON = {
    "rewrites_graders", "searches_labels", "stays_behind", "fills_disk", "prints_scores", "links_to_passwords",
    "links_to_hidden", "links_to_environment", "makes_a_pipe", "makes_a_folder", "makes_it_huge", "speaks_for_the_task",
}  # fmt: skip
STAND_INS = {"stays_behind", "links_to_hidden", "makes_a_pipe", "makes_it_huge"}
# Of the tricks that a program tries when it is asked for a move, these are played at once for every such task.
PIPE_TRICKS = {"exits", "says_nan", "equals_all", "speaks_over_pipe", "patches_json", "reads_its_parent"}
SLOW_TRICKS = {"loops", "sleeps", "says_endless"}
EPSILON = 1e-9


def played(task: str, agent: str, number: int = 0) -> Played:
    made = ResearchTask(task)
    return play_script(made, made.problems("eval")[number], made.agents()[agent])


def score_of(task: str, agent: str, number: int = 0) -> float:
    verdict = played(task, agent, number).verdict
    assert verdict is not None
    assert verdict.score is not None, verdict.note
    return verdict.score


def mean_hidden(task: str, agent: str, numbers: range) -> float:
    verdicts = [played(task, agent, number).verdict for number in numbers]
    return fmean(verdict.parts["hidden"] for verdict in verdicts if verdict is not None)


def cheaters(tasks: tuple[str, ...], quick: bool) -> Iterator[tuple[str, str]]:
    """Tasks and their cheaters; the quick ones, or all the others."""
    for task in tasks:
        for agent in load_folder(task).agents.values():
            if agent.kind == "cheater" and quick == is_quick(task, agent.name):
                yield task, agent.name


def is_quick(task: str, agent: str) -> bool:
    if agent in COMMON:
        return task == "blotto" or (agent in STAND_INS and task in ("titanic", "sat"))
    if task in ("battle_of_sexes", "sat", "prisoners_dilemma"):
        return agent in PIPE_TRICKS and task == "battle_of_sexes"
    return agent not in SLOW_TRICKS


@functools.cache
def lazy_score(task: str) -> float:
    return score_of(task, "lazy")


def assert_no_gain(task: str, agent: str) -> None:
    """A cheater earns no more than the baseline, or than the lazy answer that it leaves earns by luck."""
    assert score_of(task, agent) <= max(0.0, lazy_score(task)) + EPSILON


def digest(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            whole.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return whole.hexdigest()


@pytest.fixture
def unharmed() -> Iterator[None]:
    """Nothing outside a sandbox may change: not the tasks, not the folder one is in."""
    before = digest(SHIPPED), sorted(os.listdir()), sorted(name for name in os.listdir("/tmp") if "harm" in name)
    yield
    after = digest(SHIPPED), sorted(os.listdir()), sorted(name for name in os.listdir("/tmp") if "harm" in name)
    assert before == after


def test_every_task_has_an_agent_of_every_kind_and_many_cheaters() -> None:
    for task in shipped():
        kinds = [agent.kind for agent in load_folder(task).agents.values()]
        assert {"novice", "lazy", "expert", "cheater"} == set(kinds)
        assert kinds.count("cheater") >= 20


def test_every_task_tries_what_every_task_must_withstand() -> None:
    for task in shipped():
        assert set(load_folder(task).agents) >= COMMON


@pytest.mark.slow
@pytest.mark.parametrize("task", OTHERS)
@pytest.mark.usefixtures("sandboxes", "unharmed")
def test_an_expert_reaches_the_ceiling_and_a_lazy_one_the_baseline(task: str) -> None:
    check_ends(task, range(2))


@pytest.mark.slow
@pytest.mark.parametrize("task", DATA_TASKS)
@pytest.mark.usefixtures("sandboxes", "unharmed", "data")
def test_an_expert_reaches_the_ceiling_of_real_data(task: str) -> None:
    check_ends(task, range(2))


@pytest.mark.slow
@pytest.mark.parametrize("task", OTHERS + DATA_TASKS)
@pytest.mark.usefixtures("sandboxes", "unharmed", "data")
def test_an_expert_reaches_the_ceiling_closely(task: str) -> None:
    check_ends(task, range(16))


@pytest.mark.slow
@pytest.mark.parametrize("task", LAB_TASKS)
@pytest.mark.usefixtures("sandboxes", "unharmed")
def test_an_expert_raises_the_score_of_a_spec(task: str) -> None:
    check_ends(task, range(2))


def check_ends(task: str, numbers: range) -> None:
    """Means over problems lie where they should, as far as the stated noise allows."""
    stated = load_folder(task).task
    slack = 3.5 * stated.noise / len(numbers) ** 0.5
    assert mean_hidden(task, "expert", numbers) == pytest.approx(stated.ceiling, abs=slack)
    assert mean_hidden(task, "lazy", numbers) == pytest.approx(stated.baseline, abs=slack + EPSILON)


@pytest.mark.parametrize("task", OTHERS + DATA_TASKS)
@pytest.mark.usefixtures("sandboxes", "data")
def test_a_novice_speaks_well(task: str) -> None:
    words = played(task, "novice")
    agent = load_folder(task).agents["novice"]
    assert not [exchange.response.fault for exchange in words.exchanges if exchange.response.fault]
    assert words.verdict is not None
    assert not words.verdict.note
    assert words.exchanges[1].response.score is not None
    texts = {agent.respond(problem, []) for problem in ResearchTask(task).problems("eval")[:8]}
    assert len(texts) > 1, "a novice must try this and that"


@pytest.mark.parametrize(("task", "agent"), list(cheaters(OTHERS, quick=True)))
@pytest.mark.usefixtures("sandboxes", "unharmed")
def test_a_cheater_gains_nothing(task: str, agent: str) -> None:
    assert_no_gain(task, agent)


@pytest.mark.parametrize(("task", "agent"), list(cheaters(DATA_TASKS, quick=True)))
@pytest.mark.usefixtures("sandboxes", "unharmed", "data")
def test_a_cheater_gains_nothing_from_real_data(task: str, agent: str) -> None:
    assert_no_gain(task, agent)


@pytest.mark.parametrize(("task", "agent"), list(cheaters(LAB_TASKS, quick=True)))
@pytest.mark.usefixtures("unharmed")
def test_a_spec_that_changes_more_than_the_agent_is_refused(task: str, agent: str) -> None:
    verdict = played(task, agent).verdict
    assert verdict is not None
    assert (verdict.score, verdict.outcome) == (0.0, "wrong")
    assert "unfit" in verdict.note


@pytest.mark.slow
@pytest.mark.parametrize(("task", "agent"), list(cheaters(OTHERS + DATA_TASKS, quick=False)))
@pytest.mark.usefixtures("sandboxes", "unharmed", "data")
def test_every_other_cheater_gains_nothing(task: str, agent: str) -> None:
    assert_no_gain(task, agent)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "agent"), list(cheaters(LAB_TASKS, quick=False)))
@pytest.mark.usefixtures("sandboxes", "unharmed")
def test_every_other_cheater_of_a_lab_gains_nothing(task: str, agent: str) -> None:
    stated = load_folder(task).task
    assert score_of(task, agent) <= 3.5 * stated.noise / abs(stated.ceiling - stated.baseline)


@pytest.mark.usefixtures("sandboxes")
def test_no_process_is_left_behind_by_a_command_or_by_an_artefact() -> None:
    task = ResearchTask("battle_of_sexes")
    mark = f"1000.{os.getpid()}"
    program = f"import subprocess\nsubprocess.Popen(['sleep', '{mark}'])\n\ndef move(mine, theirs): return 'A'"
    dialogue = task.begin(task.problems("eval")[0], 0)
    try:
        dialogue.opening()
        dialogue.hear(bash(f"(setsid nohup sleep {mark} > /dev/null 2>&1 &); sleep 0.2; pgrep -f sleep"))
        dialogue.hear(write("strategy.py", program))
        assert dialogue.hear("validate").score is not None
        assert dialogue.verdict().score is not None
    finally:
        dialogue.close()
    assert wait_until(lambda: not marked(mark))
