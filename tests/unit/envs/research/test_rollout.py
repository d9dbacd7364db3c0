"""A rollout: its tools and budgets, what is graded at its end, and how it goes on after a death or from a snapshot."""

from __future__ import annotations

import os
import signal

import pytest

from operant.envs.research.grading import Work
from operant.envs.research.rewards import MOST_PENALTY
from operant.envs.research.rollout import Rollout
from operant.envs.research.workbench import ResearchTask
from operant.envs.research.workspace import Interrupted
from operant.envs.sandbox import SandboxDied, bubblewrap, docker
from operant.envs.text.dialogue import Response
from operant.errors import UsageError
from tests.processes import lives, wait_until
from tests.unit.envs.research.conftest import GUESS, HALF, RIGHT


def say(rollout: Rollout, *texts: str) -> Response:
    for text in texts[:-1]:
        assert rollout.hear(text).fault is None
    return rollout.hear(texts[-1])


def words(response: Response) -> str:
    return response.messages[0].text


def started(rollout: Rollout) -> int:
    """The process of the rollout's sandbox."""
    sandbox = rollout._workspace._sandbox
    assert sandbox is not None
    return sandbox._keeper._agent.pid  # pyright: ignore[reportAttributeAccessIssue]


def begun(task: ResearchTask, seed: int = 0, number: int = 7) -> Rollout:
    rollout = task.begin(task.problems("train")[number], seed)
    assert isinstance(rollout, Rollout)
    return rollout


def test_the_tools(rollout: Rollout) -> None:
    assert "wrote 12 bytes" in words(say(rollout, "```write out/a.txt\none\ntwo\nsix\n```"))
    assert words(rollout.hear("view out/a.txt 2 3")).startswith(
        "two\nsix\n[turn 2 of 8 | validations left 3 | 30 s left]"
    )
    assert words(rollout.hear("bash cat out/a.txt; echo oops >&2; exit 3")).startswith(
        "one\ntwo\nsix\noops\n[exit 3]\n"
    )
    assert "edited" in words(rollout.hear("```edit out/a.txt\n<<<<<<< old\ntwo\n=======\n2\n>>>>>>>\n```"))
    assert words(rollout.hear("view out/a.txt")).startswith("one\n2\nsix\n")
    assert "a.txt" in words(rollout.hear("view out"))
    assert words(rollout.hear("```python\nprint(6 * 7)\n```")).startswith("42\n")


def test_without_a_command_no_sandbox_is_opened(rollout: Rollout) -> None:
    say(rollout, RIGHT, "```edit solution.py\n<<<<<<< old\n    return 2 * n\n=======\n    return n + n\n>>>>>>>\n```")
    assert words(rollout.hear("view solution.py")).startswith("def solve(n):\n    return n + n\n")
    assert rollout._workspace._sandbox is None
    assert rollout.hear("validate").score == 1.0
    assert rollout._workspace._sandbox is None


def test_faults_are_told_counted_and_cost_a_little(rollout: Rollout) -> None:
    mistakes = ["hello", "```edit none\n<<<<<<< old\na\n=======\nb\n>>>>>>>\n```", '{"name": "rm"}', "write /usr/x 1"]
    for text in mistakes:
        response = rollout.hear(text)
        assert response.fault
        assert response.reward == pytest.approx(-0.02)
        assert words(response).startswith("[fault] ")
    verdict = rollout.verdict()
    assert verdict.parts["faults"] == len(mistakes)
    assert verdict.parts["final"] == pytest.approx(-0.08)
    assert verdict.score == 0.0, "a fault costs reward, not score"


def test_the_penalty_has_a_bound() -> None:
    task = ResearchTask(GUESS, turns=50)
    rollout = begun(task)
    costs = [-(rollout.hear("nothing").reward or 0.0) for _ in range(50)]
    assert sum(costs) == pytest.approx(MOST_PENALTY)
    rollout.close()


def test_only_the_first_action_is_done(rollout: Rollout) -> None:
    response = rollout.hear(f"{RIGHT}\n```submit\n```")
    assert "only the first action" in words(response)
    assert not response.done


def test_what_is_missing_of_an_output_is_said() -> None:
    rollout = begun(ResearchTask(GUESS, output_bytes=100))
    said = words(rollout.hear("```python\nprint('a' * 500 + 'z' * 500)\n```"))
    assert f"{'a' * 50}\n[... 901 bytes left out ...]\n{'z' * 49}\n" in said
    said = words(rollout.hear("bash yes 2>/dev/null | head -c 5000000; echo end"))
    assert "[... 4999904 bytes left out ...]" in said
    assert "end\n[turn" in said
    rollout.close()


def limited(**limits: float) -> ResearchTask:
    task = ResearchTask(GUESS)
    changed = task.folder.task.limits.model_copy(update=limits)
    task.folder.task = task.folder.task.model_copy(update={"limits": changed})
    return task


def test_a_bomb_costs_its_command_and_no_more() -> None:
    rollout = begun(limited(memory_mb=128))
    hold = "python3 -c \"held = b'x' * (60 << 20); import time; time.sleep(5)\" &"
    assert "[killed: too much memory]" in words(rollout.hear(f"bash {hold} {hold} {hold} {hold} wait"))
    assert words(rollout.hear("bash echo still here")).startswith("still here\n")
    rollout.close()


def test_the_time_of_a_command_and_of_all() -> None:
    rollout = begun(limited(seconds=0.4, total_seconds=60))
    first = rollout.hear("bash sleep 60")
    assert "its time was over" in words(first)
    assert not first.done
    rollout.close()
    rollout = begun(limited(seconds=0.4, total_seconds=0.7))
    last = rollout.hear("bash sleep 60")
    if not last.done:  # on a machine that is quick enough to end the first command in time
        last = rollout.hear("bash sleep 60")
    assert last.done
    assert "| 0 s left]" in words(last)
    assert rollout.hear("bash ls").fault == "the rollout has ended"


def test_validations_are_limited_scored_and_paid_by_improvement(rollout: Rollout) -> None:
    first = say(rollout, HALF, "validate")
    assert first.score is not None
    assert 0.1 < first.score < 0.9
    assert first.reward == pytest.approx(first.score)
    second = say(rollout, RIGHT, "validate")
    assert (second.score, second.reward) == (1.0, pytest.approx(1 - first.score))
    third = say(rollout, HALF, "validate")
    assert third.reward
    assert third.reward < 0
    assert "no validations are left" in str(rollout.hear("validate").fault)
    verdict = rollout.verdict()
    assert verdict.score == 1.0, "the best that was validated is graded"
    assert verdict.parts["delta"] == pytest.approx((third.score or 0) - 0.02)


def test_the_last_files_are_graded_where_that_is_asked_for() -> None:
    rollout = begun(ResearchTask(GUESS, keep="last"))
    say(rollout, RIGHT, "validate", HALF, "submit")
    score = rollout.verdict().score
    assert score is not None
    assert score < 0.9


def test_hidden_and_validation_cases_differ_and_repeat() -> None:
    task = ResearchTask(GUESS)

    def scores(seed: int) -> list[float | None]:
        rollout = begun(task, seed)
        shown = [say(rollout, each, "validate").score for each in (HALF, HALF.replace("2 * n", "n + n"))]
        return [*shown, rollout.verdict().parts["hidden"]]

    assert scores(0) == scores(0)
    assert len({*scores(0), *scores(1)[:2]}) > 2, "every validation draws its own cases"
    assert scores(0)[-1] == scores(1)[-1], "a problem's hidden cases are the same for all its rollouts"


def test_asking_again_about_the_same_files_draws_no_luckier_score() -> None:
    rollout = begun(ResearchTask(GUESS, noise=0.2))
    first = say(rollout, HALF, "validate")
    again = say(rollout, RIGHT, HALF, "validate")
    assert again.score == first.score
    assert again.reward == 0
    assert "validations left 1" in words(again)
    assert rollout.verdict().parts["best"] == rollout.verdict().parts["delta"] == first.score


def test_shown_scores_may_be_noisy() -> None:
    rollout = begun(ResearchTask(GUESS, noise=0.1))
    shown = say(rollout, RIGHT, "validate").score
    assert shown != 1.0
    assert rollout.verdict().parts["hidden"] == 1.0


def test_what_cannot_be_scored_is_told_and_is_worth_the_baseline(rollout: Rollout) -> None:
    response = say(rollout, "```write solution.py\n1 / 0\n```", "validate")
    assert "ZeroDivisionError" in str(response.fault)
    response = say(rollout, "bash rm solution.py; ln -s /etc/hostname solution.py", "validate")
    assert "no plain file" in str(response.fault)
    verdict = rollout.verdict()
    assert (verdict.score, verdict.outcome, verdict.parts["hidden"]) == (0.0, "wrong", 0.0)
    assert "unfit" in verdict.note


def test_a_grader_that_fails_whatever_is_handed_in_is_an_error_of_the_task(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> float:
        raise ZeroDivisionError("a defect of the task")

    monkeypatch.setitem(vars(rollout._settings.folder), "grade", fails)
    response = say(rollout, RIGHT, "validate")
    assert "not counted" in words(response)
    assert "validations left 3" in words(response)
    assert (response.fault, response.reward) == (None, None)
    verdict = rollout.verdict()
    assert (verdict.score, verdict.outcome, verdict.parts["grader_failed"]) == (None, "error", 1.0)
    assert verdict.parts["faults"] == 0
    assert "a defect of the task" in verdict.note


def test_a_grader_that_fails_on_an_artefact_gives_the_baseline_and_says_so(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(work: Work) -> float:
        work.artefact("solution.py")
        raise ZeroDivisionError("a defect of ours")

    monkeypatch.setitem(vars(rollout._settings.folder), "grade", fails)
    response = say(rollout, RIGHT, "validate")
    assert "the grader failed on this" in words(response)
    verdict = rollout.verdict()
    assert (verdict.score, verdict.outcome, verdict.parts["grader_failed"]) == (0.0, "wrong", 1.0)
    assert "a defect of ours" in verdict.note


def test_a_fault_of_the_machine_is_nobodys_fault(rollout: Rollout, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> float:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(vars(rollout._settings.folder), "grade", fails)
    response = say(rollout, RIGHT, "validate")
    assert "not counted" in words(response)
    assert "validations left 3" in words(response)
    assert (rollout.verdict().score, rollout.verdict().outcome) == (None, "error")


def test_the_turns_end_a_rollout() -> None:
    rollout = begun(ResearchTask(GUESS, turns=2))
    assert not say(rollout, RIGHT).done
    assert rollout.hear("bash ls").done
    assert rollout.verdict().score == 1.0, "what was there at the end is graded"


def test_a_dead_sandbox_is_made_anew_and_the_agent_is_told(rollout: Rollout) -> None:
    say(rollout, RIGHT, "bash echo made by a command > made.txt")
    os.kill(started(rollout), signal.SIGKILL)
    response = rollout.hear("bash ls")
    assert "died and was made anew" in words(response)
    assert response.fault is None
    listed = words(rollout.hear("bash ls; cat README.md"))
    assert "solution.py" in listed
    assert "made.txt" not in listed
    verdict = rollout.verdict()
    assert (verdict.score, verdict.parts["reopened"], verdict.parts["faults"]) == (1.0, 1.0, 0.0)


def test_after_a_validation_a_death_costs_nothing_of_before(rollout: Rollout) -> None:
    say(rollout, RIGHT, "bash echo kept > made.txt", "validate")
    os.kill(started(rollout), signal.SIGKILL)
    assert words(rollout.hear("view made.txt")).startswith("kept"), "nothing was lost, so nothing is told"
    assert rollout.verdict().parts["reopened"] == 1.0


def test_work_that_dies_at_the_end_is_graded_by_what_is_known_of_it(rollout: Rollout) -> None:
    say(rollout, "bash echo 'def solve(n): return 2 * n' > solution.py")
    os.kill(started(rollout), signal.SIGKILL)
    rollout.hear("submit")
    verdict = rollout.verdict()
    assert (verdict.score, verdict.outcome, verdict.parts["reopened"]) == (0.0, "wrong", 1.0)


def test_where_no_sandbox_opens_the_rollout_ends_without_a_score(
    rollout: Rollout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead() -> None:
        raise SandboxDied("the machine is out of processes")

    monkeypatch.setattr(rollout._workspace, "_opened", dead)
    assert rollout.hear("bash ls").done
    verdict = rollout.verdict()
    assert verdict.score is None
    assert "out of processes" in verdict.note


def test_without_a_safe_sandbox_nothing_begins(task: ResearchTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "trouble", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(docker, "engine", lambda wanted=None: None)
    with pytest.raises(UsageError, match="no safe place to run code"):
        begun(task)
    with pytest.raises(UsageError, match="sandbox"):
        ResearchTask(GUESS, sandbox="process")


def test_a_snapshot_goes_on_without_the_scores_of_its_parent() -> None:
    task = ResearchTask(GUESS)
    problem, parent = task.problems("train")[7], begun(task)
    say(parent, HALF, "bash echo note > note.txt", "validate")
    snapshot = parent.snapshot()
    idle = task.resume(problem, 1, snapshot)
    verdict = idle.verdict()
    assert verdict.parts["inherited"] == 1.0, "who does nothing has no score of its own"
    assert verdict.parts["best"] == verdict.parts["delta"] == 0.0
    child = task.resume(problem, 1, snapshot)
    assert "note" in words(child.hear("view note.txt"))
    assert "[turn 5 of 8 | validations left 2" in words(child.hear(RIGHT))
    improved = child.hear("validate")
    assert improved.reward is not None
    assert 0 < improved.reward < 1, "it is paid for what it adds"
    verdict = child.verdict()
    assert (verdict.score, verdict.parts["inherited"], verdict.parts["best"]) == (1.0, 0.0, 1.0)
    assert parent.verdict().score != 1.0, "the parent knows nothing of its child"
    for one in (idle, child, parent):
        one.close()


def test_a_snapshot_without_commands_needs_no_sandbox(task: ResearchTask, rollout: Rollout) -> None:
    say(rollout, HALF)
    child = task.resume(task.problems("train")[7], 0, rollout.snapshot())
    assert isinstance(child, Rollout)
    assert words(child.hear("view solution.py")).startswith("def solve(n):")
    assert child._workspace.in_memory
    child.hear(RIGHT)
    assert (child.verdict().score, "2 * n if" in words(rollout.hear("view solution.py"))) == (1.0, True)


def test_a_snapshot_of_another_problem_is_refused(task: ResearchTask, rollout: Rollout) -> None:
    with pytest.raises(UsageError, match="snapshot"):
        task.resume(task.problems("train")[8], 0, rollout.snapshot())


def test_the_brief_style_fits_a_tiny_context() -> None:
    task = ResearchTask(GUESS, style="bare")
    problem = task.problems("train")[0]
    assert (problem.prompt, problem.system, problem.stop) == ("guess\n", None, ("\n",))
    rollout = begun(task)
    assert [message.text for message in rollout.opening()] == ["guess\n"]
    assert words(rollout.hear("write solution.py solve = lambda n: 2 * n")) == "ok\n"
    assert words(rollout.hear("validate")) == "1 2 left\n"
    assert words(rollout.hear("vlidate")) == "? no action found; answer with one tool ca\n"
    assert words(rollout.hear("submit")) == "end\n"
    assert rollout.verdict().score == 1.0


def test_closing_leaves_nothing_and_may_be_repeated(rollout: Rollout) -> None:
    say(rollout, "bash sleep 60 & disown")
    pid = started(rollout)
    rollout.close()
    rollout.close()
    assert wait_until(lambda: not lives(int(pid)))
    assert rollout.hear("bash ls").done


def test_problems_have_names_and_seeds_of_their_own(task: ResearchTask) -> None:
    train, evaluation = task.problems("train"), task.problems("eval")
    assert (len(train), train[3].id, train[3].answer) == (1000, "guess/train/3", {"seed": 3})
    assert not {one.answer["seed"] for one in train} & {one.answer["seed"] for one in evaluation}
    task.name = "other"
    assert task.problems("eval")[0].id == "other/eval/0"


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "write", "arguments": {"path": "a\\ud800", "content": "x"}}',
        '{"name": "write", "arguments": {"path": "a", "content": "x\\udfff"}}',
        '{"name": "edit", "arguments": {"path": "examples.txt", "old": "1", "new": "\\ud800"}}',
        f'{{"name": "view", "arguments": {{"path": "{"a" * 200_000}"}}}}',
        f'{{"name": "write", "arguments": {{"path": "{"a" * 200_000}", "content": "x"}}}}',
        f'{{"name": "edit", "arguments": {{"path": "{"a/" * 2_000}b", "old": "x", "new": "y"}}}}',
        f'{{"name": "bash", "arguments": {{"command": "echo {"a" * 200_000}"}}}}',
        f'{{"name": "view", "arguments": {{"path": "a", "from": {"[" * 900 + "]" * 900}}}}}',
    ],
    ids=["path", "content", "new", "long view", "long write", "long edit", "long command", "deep"],
)
def test_what_no_file_system_takes_is_a_fault_and_the_rollout_goes_on(rollout: Rollout, text: str) -> None:
    for _ in ("on paper", "in a sandbox"):
        response = rollout.hear(text)
        assert response.fault
        assert len(words(response).encode()) < 1_000
        assert words(rollout.hear("bash echo still here")).startswith("still here\n")
    assert rollout.verdict().parts["tool_errors"] == 0


def test_a_defect_of_ours_is_told_counted_and_logged(rollout: Rollout, caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: object) -> object:
        raise KeyError("a defect")

    rollout._tools["view"] = broken  # pyright: ignore[reportArgumentType]
    response = rollout.hear("view examples.txt")
    assert (response.fault, response.reward) == (None, None), "the policy pays nothing"
    assert "the tool itself failed" in words(response)
    assert words(rollout.hear("bash echo still here")).startswith("still here\n")
    assert "KeyError: 'a defect'" in caplog.text
    verdict = rollout.verdict()
    assert (verdict.parts["tool_errors"], verdict.parts["faults"]) == (1, 0)


def test_a_pipe_or_a_device_is_no_file_to_wait_for(rollout: Rollout) -> None:
    rollout.hear("bash mkfifo pipe; ln -s /dev/zero zero")
    for text in ("view pipe", "view zero", "view /dev/zero", "write pipe x", "write zero x"):
        assert "it is no plain file" in words(rollout.hear(text)), text


def test_a_name_that_is_too_long_in_bytes_does_not_spoil_the_workspace(rollout: Rollout) -> None:
    assert rollout.hear(f"write {'é' * 150} x").fault
    assert words(rollout.hear("bash echo still here")).startswith("still here\n")


def test_a_checkpoint_is_the_rollout_itself() -> None:
    task = ResearchTask(GUESS)
    problem, first = task.problems("train")[7], begun(task)
    say(first, HALF, "bash echo note > note.txt", "validate")
    checkpoint = first.checkpoint()
    assert checkpoint is not None
    again = task.restore(problem, 0, checkpoint)
    assert isinstance(again, Rollout)
    assert again._state == first._state
    assert "note" in words(again.hear("view note.txt"))
    assert "[turn 5 of 8 | validations left 2" in words(again.hear(RIGHT))
    done = again.hear("submit")
    ended = again.checkpoint()
    assert done.done
    assert ended is not None
    last = task.restore(problem, 0, ended)
    assert last.verdict() == again.verdict()
    for one in (first, again, last):
        one.close()


def test_a_sandbox_that_dies_while_it_is_kept_is_told_at_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = begun(ResearchTask(GUESS))
    say(rollout, "bash echo note > note.txt")

    def died() -> None:
        raise Interrupted("the sandbox died")

    monkeypatch.setattr(rollout._workspace, "save", died)
    with pytest.raises(Interrupted):
        rollout.checkpoint()
    assert "the sandbox died and was made anew" in words(rollout.hear("bash true"))
    assert "died" not in words(rollout.hear("bash true"))
    rollout.close()
