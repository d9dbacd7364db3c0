"""A prompt journal balances, or the prompt that is lost, repeated or trained on twice is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from operant.run.episode import Episode
from operant.run.layout import PROMPTS_FILE
from operant.run.progress import Progress
from operant.run.prompt_balance import PromptBalance, check_prompts
from operant.run.prompt_journal import PromptJournal
from operant.run.run import Run

SPEC = {
    "env": {"max_frame": 100},
    "meta": {"log_frequency": 4, "eval_frequency": 50, "save_frequency": 4, "keep_checkpoints": 2},
}


class Trained:
    """A run that trains on two prompts of two completions a round, and may be killed between any two rows."""

    def __init__(self, folder: Path) -> None:
        self.run = Run.create(folder / "run", name="r", spec=SPEC, seed=0, session=0, threads=1)

    def attempt(
        self, rounds: int, owed: Callable[[int], list[int]] = lambda position: [], outcome: str = "trained"
    ) -> None:
        """Save after each round, but not after the last one, which is lost with the crash."""
        with self.run.session() as session:
            latest = session.latest
            journal = PromptJournal(self.run.path, self.run.attempts)
            session.note_offsets_of(journal)
            frames = latest.at.frames if latest else 0
            offset = latest.offsets[PROMPTS_FILE] if latest else 0
            journal.start(offset, frames // 2, owed(frames // 2), frames)
            for number in range(rounds):
                places = range(frames // 2, frames // 2 + 2)
                for place in places:
                    journal.add("drawn", place, problem=f"p{place}")
                    journal.add("generated", place)
                    journal.add("graded", place)
                for place in places:
                    journal.add(outcome, place, problem=f"p{place}", completions=2)
                    for _ in range(2):
                        at = Progress(frames, 0, 0, 0, 0.0)
                        session.episode(Episode("e", "train", 0, at, 1.0, 1, "terminated", item=f"p{place}"))
                frames += 4
                if number < rounds - 1:
                    session.save(Progress(frames, 0, 0, 0, 0.0), lambda folder: (folder / "w").write_text("w"))

    def balance(self) -> PromptBalance:
        found = check_prompts(self.run)
        assert found is not None
        return found

    def edit(self, change: Callable[[list[str]], list[str]]) -> None:
        """Tamper with the journal."""
        path = self.run.path / PROMPTS_FILE
        path.write_text("".join(f"{line}\n" for line in change(path.read_text().splitlines())))


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    made = Trained(tmp_path)
    made.attempt(3)
    made.attempt(3)
    return made


def test_outcomes_of_lost_updates_do_not_count(trained: Trained) -> None:
    found = trained.balance()
    assert found.faults == []
    assert found.counts == {"trained": 10}
    assert (found.attempts, found.undone, found.regenerated) == (2, 2, 2)
    assert str(found) == "10 prompts in 2 attempts: 10 trained, 2 outcomes undone by crashes"


def test_a_torn_last_row_is_cut_and_read_over(trained: Trained) -> None:
    with (trained.run.path / PROMPTS_FILE).open("a") as file:
        file.write('{"event":"trained","pro')
    assert trained.balance().balanced
    trained.attempt(1)
    assert trained.balance().balanced


def test_a_prompt_that_is_trained_on_twice_is_named(trained: Trained) -> None:
    trained.edit(lambda lines: [*lines, next(line for line in lines if '"trained"' in line)])
    assert any("prompt 0 is trained again, first in line" in fault for fault in trained.balance().faults)


def test_a_lost_prompt_is_named(trained: Trained) -> None:
    def without_prompt_8(lines: list[str]) -> list[str]:
        return [line for line in lines if '"prompt":8' not in line]

    trained.edit(without_prompt_8)
    assert "prompt 8 is lost: later ones have outcomes, it has none" in trained.balance().faults


def test_a_checkpoint_that_skips_a_prompt_is_told(tmp_path: Path) -> None:
    made = Trained(tmp_path)
    made.attempt(3)
    made.attempt(1, owed=lambda position: [position - 1])
    assert any("prompt 3 would be repeated" in fault for fault in made.balance().faults)


def test_the_journal_is_held_against_checkpoints_and_episodes(trained: Trained) -> None:
    trained.edit(lambda lines: [line.replace('"completions":2', '"completions":3', 1) for line in lines])
    faults = trained.balance().faults
    assert any("counts 16 completions, the journal 24 up to there" in fault for fault in faults)
    assert any("p0 has 2 episodes, and 3 completions in the journal" in fault for fault in faults)


def test_an_outcome_without_a_grade_is_told(trained: Trained) -> None:
    trained.edit(lambda lines: [line for line in lines if line != '{"event":"graded","prompt":9}'])
    assert any("prompt 9 is trained, but was not graded" in fault for fault in trained.balance().faults)


def test_a_run_without_a_journal_has_no_balance(tmp_path: Path) -> None:
    assert check_prompts(Trained(tmp_path).run) is None


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[1]",
        '{"event":"dra',
        '{"prompt":3}',
        '{"event":["drawn"],"prompt":3}',
        '{"event":"eaten","prompt":3}',
        '{"event":"drawn","prompt":"3"}',
        '{"event":"drawn","prompt":true}',
        '{"event":"trained","prompt":3,"problem":"p3"}',
        '{"event":"start","attempt":1}',
        '{"event":"turn","prompt":3}',
    ],
)
def test_a_line_that_is_no_row_is_named_and_read_over(trained: Trained, line: str) -> None:
    trained.edit(lambda lines: [*lines, line])
    found = trained.balance()
    assert found.faults == ["prompts.jsonl:51: this line is no row of the journal; what it said is lost"]
    assert found.counts == {"trained": 10}


def test_a_damaged_row_of_the_episodes_is_an_episode_less(trained: Trained) -> None:
    path = trained.run.path / "episodes.jsonl"
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(b"x" * len(first) + b"\n" + rest)
    assert trained.balance().faults == ["p0 has 1 episodes, and 2 completions in the journal"]


def test_a_journal_that_has_gone_is_missed(trained: Trained) -> None:
    (trained.run.path / PROMPTS_FILE).unlink()
    first, *_ = trained.balance().faults
    assert "prompts.jsonl lacks" in first
    assert "bytes that it had at" in first


def test_the_first_row_of_an_attempt_is_missed(trained: Trained) -> None:
    trained.edit(
        lambda lines: [line.replace('"start"', '"begin"') if '"attempt":1' in line else line for line in lines]
    )
    assert "prompts.jsonl:2: the row is lost that an attempt begins with" in trained.balance().faults


def test_a_row_that_is_missing_is_no_negative_count(trained: Trained) -> None:
    trained.edit(lambda lines: [line for line in lines if line != '{"event":"drawn","prompt":9,"problem":"p9"}'])
    assert str(trained.balance()).startswith(
        "9 prompts in 2 attempts: 10 trained, 2 outcomes undone by crashes; does not"
    )


@pytest.mark.parametrize("kept", [0, 300])
def test_an_attempt_that_began_with_a_shortened_journal_says_so_once(trained: Trained, kept: int) -> None:
    path = trained.run.path / PROMPTS_FILE
    path.write_bytes(path.read_bytes()[:kept])
    trained.attempt(2)
    (fault,) = trained.balance().faults
    assert "bytes were gone that the journal had at the checkpoint of frame 16" in fault
    assert "lost_rows" in (trained.run.path / "events.jsonl").read_text()
