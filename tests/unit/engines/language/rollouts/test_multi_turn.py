"""Rollouts of many turns: every one accounted for, each in a world of its own, and the same again for the same seed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.rollouts.multi_turn import reward_of
from operant.engines.language.rollouts.store import RolloutStore
from operant.engines.language.rollouts.types import Group, as_episodes
from operant.envs.text.dialogue import Dialogue, DialogueTask, Message, Response
from operant.envs.text.task import Problem, Verdict
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language import DialogueSpec

OPEN: set[int] = set()


class Echo(DialogueTask):
    """A world that says how often it has heard something; `bad` worlds break at their second turn."""

    TURNS = 3

    def __init__(self, bad: int = 0) -> None:
        self.name = "echo"
        self.bad = bad

    def problems(self, split: Literal["train", "eval"]) -> Sequence[Problem]:
        return [Problem(f"echo/{split}/{n}", self.name, "hi", {"seed": n}, max_tokens=3) for n in range(8)]

    def begin(self, problem: Problem, seed: int) -> Dialogue:
        return Heard(problem.answer["seed"] < self.bad)


class Heard(Dialogue):
    def __init__(self, bad: bool) -> None:
        OPEN.add(id(self))
        self.thread = threading.get_ident()
        self.bad = bad
        self.heard: list[str] = []

    def opening(self) -> tuple[Message, ...]:
        return (Message("user", "hi"),)

    def hear(self, text: str, cut: bool = False) -> Response:
        assert threading.get_ident() == self.thread, "a dialogue is used by one thread"
        self.heard.append(text)
        if self.bad and len(self.heard) == 2:
            raise RuntimeError("the world broke")
        return Response((Message("user", str(len(self.heard))),), reward=0.5, fault="no" if cut else None)

    def verdict(self) -> Verdict:
        assert threading.get_ident() == self.thread
        return Verdict(float(len(self.heard)), "partial", {"delta": 0.25, "faults": 1.0})

    def close(self) -> None:
        OPEN.discard(id(self))


@contextmanager
def echoing(bad: int = 0, context: int = 48, **dialogue: Any) -> Iterator[TrainingContext]:
    spec = Spec.model_validate(
        {
            "env": {
                "name": f"{__name__}:Echo",
                "max_frame": 1000,
                "text": {"arguments": {"bad": bad}, "dialogue": dialogue},
            },
            "agent": {
                "algorithm": {"name": "grpo", "group_size": 4, "batch_size": 16},
                "model": {"source": "tiny", "tiny": {"layers": 1, "width": 32, "heads": 2, "context": context}},
            },
        }
    )
    with build_context(spec, Seeds(3)) as built:
        yield built


@pytest.mark.parametrize(
    "dialogue", [{"strategy": "interleaved"}, {"strategy": "branching"}, {"strategy": "branching", "history": 1}]
)
def test_what_is_learnt_are_the_tokens_that_were_written_after_the_tokens_that_were_asked(dialogue: dict[str, Any]):
    """Nothing of it is made again from text: every learnt token is found in a call of the generator, in its place."""
    with echoing(context=64, **dialogue) as context:
        written: dict[tuple[int, ...], set[tuple[int, float]]] = {}
        generate = context.worker.generator.generate

        def recorded(prompts: Sequence[Prompt], sampling: Sampling) -> Any:
            rows = generate(prompts, sampling)
            for prompt, made in ((prompt, made) for prompt, row in zip(prompts, rows, strict=True) for made in row):
                for at, pair in enumerate(zip(made.tokens, made.logprobs, strict=True)):
                    written.setdefault((*prompt.tokens, *made.tokens[:at]), set()).add(pair)
            return rows

        context.worker.generator.generate = recorded  # pyright: ignore[reportAttributeAccessIssue]
        answers = [answer for group in rollout(context) for answer in group.answers]
    assert len(answers) == 16
    learnt = 0
    for sample, logprobs, _ in (each for answer in answers for each in samples_of(answer)):
        for place, logprob in zip(sample.places, logprobs, strict=True):
            before = (*sample.prompt, *sample.completion[:place])
            assert (sample.completion[place], logprob) in written[before]
            learnt += 1
    assert learnt == sum(answer.length for answer in answers) > 16


def rollout(context: TrainingContext, seed: int = 5) -> list[Group]:
    return context.worker.rollout(context.sampler.take(0, 4), Sampling(4, 1.0, seed=seed))


def test_rollouts_of_a_group_differ_and_come_again_for_the_same_seed():
    with echoing(concurrency=3) as context:
        first, again, other = rollout(context), rollout(context), rollout(context, seed=6)
    assert [len(group.answers) for group in first] == [4] * 4
    said = [[answer.turns for answer in group.answers] for group in first]
    texts = [[[turn.text for turn in turns] for turns in group] for group in said]
    assert texts == [[[turn.text for turn in answer.turns] for answer in group.answers] for group in again]
    assert texts != [[[turn.text for turn in answer.turns] for answer in group.answers] for group in other]
    assert len({tuple(turns) for group in texts for turns in group}) == 16
    assert not OPEN


def test_what_is_generated_does_not_depend_on_how_many_play_at_once():
    def tokens(concurrency: int) -> list[list[tuple[int, ...]]]:
        with echoing(concurrency=concurrency) as context:
            return [[answer.completion.tokens for answer in group.answers] for group in rollout(context)]

    assert tokens(1) == tokens(16)


def test_a_world_that_breaks_costs_its_rollouts_and_nothing_else():
    with echoing(bad=2) as context:
        groups = context.worker.rollout(context.sampler.parts[0].task.problems("train")[:4], Sampling(4, 1.0, seed=5))
    assert [(len(group.answers), len(group.errors)) for group in groups] == [(0, 4), (0, 4), (4, 0), (4, 0)]
    assert groups[0].errors[0] == "RuntimeError: the world broke"
    assert not OPEN


def test_turns_end_by_the_spec_and_by_the_context():
    with echoing(turns=2) as context:
        answer = rollout(context)[0].answers[0]
        assert (len(answer.steps), answer.verdict.score, answer.cut) == (2, 2.0, True)
    with echoing(context=16) as context:
        answer = rollout(context)[0].answers[0]
        assert len(answer.steps[-1].prompt) + 4 <= 16
        assert answer.cut


def test_the_record_has_every_turn():
    with echoing(keep_ids=True) as context:
        group = rollout(context)[0]
    (episode, *_) = as_episodes(group, "train", None, Progress(), words=False)
    assert [turn.role for turn in episode.turns] == ["user", *["assistant", "user"] * 3]
    assert episode.turns[1].ids == group.answers[0].steps[0].completion.tokens
    assert (episode.turns[1].reward, episode.score, episode.ended) == (0.5, 3.0, "truncated")
    assert episode.parts["reward"] == 3.0
    assert (episode.version, episode.took is not None) == (0, True)


def test_rewards_by_scheme():
    verdict = Verdict(0.8, "partial", {"final": 0.7, "delta": 0.5, "best": 0.9})
    assert reward_of(verdict, DialogueSpec()) == 0.7
    assert reward_of(verdict, DialogueSpec(reward="delta")) == 0.5
    assert reward_of(verdict, DialogueSpec(reward="best")) == 0.9
    assert reward_of(Verdict(0.8, "partial"), DialogueSpec(reward="best")) == 0.8


class Killed(BaseException):
    """Stands for SIGKILL in the middle of a turn."""


def test_interrupted_rollouts_go_on_from_their_last_finished_turn(tmp_path: Path):
    """The whole is what an undisturbed call gives, and no turn is generated twice."""
    with echoing(concurrency=3) as context:
        worker, problems, sampling = context.worker, context.sampler.take(0, 4), Sampling(4, 1.0, seed=5)
        whole = worker.rollout(problems, sampling, range(4), 0)
        calls, generate = list[int](), worker.generator.generate
        worker.store = RolloutStore(tmp_path)

        def counted(prompts: Sequence[Prompt], sampling: Sampling) -> Any:
            calls.append(len(prompts))
            if len(calls) == 9:
                raise Killed
            return generate(prompts, sampling)

        worker.generator.generate = counted  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(Killed):
            worker.rollout(problems, sampling, range(4), 0)
        again = worker.rollout(problems, sampling, range(4), 0)
        assert sum(calls) - calls[8] == 16 * Echo.TURNS
    assert [[answer.steps for answer in group.answers] for group in again] == [
        [answer.steps for answer in group.answers] for group in whole
    ]
    assert [[answer.verdict for answer in group.answers] for group in again] == [
        [answer.verdict for answer in group.answers] for group in whole
    ]


def test_a_world_that_answers_otherwise_than_before_begins_anew(tmp_path: Path):
    with echoing() as context:
        worker = context.worker
        worker.store = RolloutStore(tmp_path)
        problems, sampling = context.sampler.take(0, 1), Sampling(1, 1.0, seed=5)
        worker.rollout(problems, sampling, [0], 0)
        row = worker.store.read_rollout(0, 0)
        assert row is not None
        row["heard"][1][0]["text"] = "another answer"
        worker.store.write_rollout(0, 0, {**row, "verdict": None, "done": False})
        (group,) = worker.rollout(problems, sampling, [0], 0)
        assert [turn.text for turn in group.answers[0].turns if turn.role == "user"] == ["hi", "1", "2", "3"]
    assert not OPEN


def test_a_checkpoint_that_cannot_be_restored_costs_no_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> Dialogue:
        raise RuntimeError("the sandbox of this checkpoint is gone")

    monkeypatch.setattr(Echo, "restore", refuse)
    with echoing() as context:
        worker = context.worker
        worker.store = RolloutStore(tmp_path)
        problems, sampling = context.sampler.take(0, 1), Sampling(1, 1.0, seed=5)
        (whole,) = worker.rollout(problems, sampling, [0], 0)
        row = worker.store.read_rollout(0, 0)
        assert row is not None
        worker.store.write_rollout(0, 0, {**row, "verdict": None, "done": False, "env": "eA=="})
        (group,) = worker.rollout(problems, sampling, [0], 0)
    assert group.errors == ()
    assert [answer.steps for answer in group.answers] == [answer.steps for answer in whole.answers]


def test_a_reward_that_is_no_number_is_no_reward(monkeypatch: pytest.MonkeyPatch):
    verdict = Verdict(1.0, "partial", {"delta": float("nan")})
    monkeypatch.setattr(Heard, "verdict", lambda self: verdict)
    with echoing(reward="delta") as context:
        (group,) = context.worker.rollout(context.sampler.take(0, 1), Sampling(4, 1.0, seed=5))
    assert (group.answers, group.errors) == ((), ("the environment gave the reward nan",) * 4)


@pytest.mark.parametrize(("heard", "after"), [("1", 6), ("another answer", 0)])
def test_a_rollout_that_goes_on_stays_with_the_weights_that_began_it(tmp_path: Path, heard: str, after: int):
    """They may be later than those that finish it after a crash; what begins anew is of these alone."""
    with echoing() as context:
        worker = context.worker
        worker.store = RolloutStore(tmp_path)
        problems, sampling = context.sampler.take(0, 1), Sampling(1, 1.0, seed=5)
        worker.rollout(problems, sampling, [0], 0)
        row = worker.store.read_rollout(0, 0)
        assert row is not None
        row["heard"][1][0]["text"] = heard
        worker.store.write_rollout(0, 0, {**row, "verdict": None, "done": False, "after": 6})
        worker.rollout(problems, sampling, [0], 0)
        found = worker.store.read_rollout(0, 0)
    assert found is not None
    assert found["after"] == after
