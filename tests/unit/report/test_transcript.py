from __future__ import annotations

from pathlib import Path

from operant.report.episodes import Catalogue
from operant.report.transcript import Page, comparison, fold, listing, transcript
from operant.run.episode import Episode, Turn
from operant.run.progress import Progress
from tests.unit.report.trajectories import play, search, training, write_rows

PLAIN = Page(width=60, unicode=False)


def episode(*turns: Turn, **details: object) -> Episode:
    return Episode("blotto", "eval", 0, Progress(frames=6400), 0.412, 2, "terminated", turns=turns, **details)  # type: ignore[arg-type]


def test_an_episode_in_words() -> None:
    told = episode(
        Turn("user", "Six numbers.", 4),
        Turn("assistant", "write plan.txt 20 20", 6, "write", seconds=0.25),
        Turn("tool", "ok", 2, "write"),
        Turn("assistant", "validate", 1, "validate", reward=0.25, score=0.061, fault="too late", seconds=1.0),
        parts={"hidden": 0.103, "faults": 1.0},
        item="blotto/eval/3",
        version=40,
        took=1.5,
        parent="n3",
    )
    assert transcript(told, "n9", PLAIN) == [
        "n9  blotto  item blotto/eval/3  eval  policy version 40",
        "score 0.4120  (hidden 0.103, faults 1)",
        "2 turns, 7 tokens written, 6 read, 1 fault, 1.5 s, terminated at frame 6,400",
        "continues n3",
        "",
        "-- opening",
        "user",
        "| Six numbers.",
        "",
        "-- turn 1  write  6 tokens  0.2 s",
        "assistant",
        "| write plan.txt 20 20",
        "tool write",
        "| ok",
        "",
        "-- turn 2  validate  reward +0.25  score 0.0610  1 token",
        "1.0 s  total +0.25",
        "!! fault: too late",
        "assistant",
        "| validate",
    ]


def test_an_error_and_an_episode_without_words() -> None:
    broken = Episode("blotto", "eval", 0, Progress(), None, 0, "error", error="the sandbox was killed")
    assert transcript(broken, "7", PLAIN)[1:4] == [
        "no score",
        "length 0, error at frame 0",
        "error: the sandbox was killed",
    ]
    assert transcript(play()[0], "1", PLAIN)[-1] == "no turns were kept of this episode"


def test_long_outputs_are_folded_unless_asked_for() -> None:
    text = "\n".join(f"line {number}" for number in range(100))
    folded = fold(text, Page(80, head=3, tail=2))
    assert folded == ["line 0", "line 1", "line 2", "... 95 lines more; --full shows them", "line 98", "line 99"]
    assert len(fold(text, Page(80, head=None))) == 100
    assert fold("a\nb", Page(80, head=1, tail=1)) == ["a", "b"]


def test_indents_stay_long_lines_break_and_control_characters_cannot_drive_the_terminal() -> None:
    assert fold("def f():\n    return 1", PLAIN) == ["def f():", "    return 1"]
    assert [len(line) for line in fold("x" * 150, PLAIN)] == [60, 60, 30]
    endless = fold("x" * 1_000_003, Page(60, head=None))
    assert "".join(endless) == "x" * 1_000_003
    assert max(map(len, endless)) == 60
    assert fold("\x1b[31mred\x07\x7f", PLAIN) == ["␛[31mred␇␡"]
    assert fold("a\tb", PLAIN) == ["a   b"]


def test_two_side_by_side_fit_the_page_and_say_where_they_diverge() -> None:
    first, second = search()[1:3]
    lines = comparison(("n1", first), ("n2", second), Page(width=100))
    assert max(map(len, lines)) <= 100
    assert "they diverge at turn 2" in lines
    assert sum("You are a careful researcher" in line for line in lines) == 1
    assert any("turn 7" in line.partition(" │ ")[0] and "turn 7" in line.partition(" │ ")[2] for line in lines)


def test_one_that_is_over_leaves_its_side_empty() -> None:
    said = Turn("assistant", "validate")
    lines = comparison(("a", episode(said)), ("b", episode(said, said)), PLAIN)
    assert any(line.startswith("(over)") for line in lines)
    assert "they are the same throughout" in comparison(("a", episode(said)), ("b", episode(said)), PLAIN)


def test_a_list_has_only_columns_that_say_something(tmp_path: Path) -> None:
    games = Catalogue.open(write_rows(tmp_path / "games.jsonl", [each.as_dict() for each in play()]))
    assert listing(games, games.entries, 2) == [
        "episode  task         split  score  ended",
        "1        CartPole-v1  eval   400.0  terminated",
        "2        CartPole-v1  eval   401.0  terminated",
        "and 3 more; --limit 5 lists them all",
    ]
    assert listing(games, [], 2) == ["no episodes match"]
    words = Catalogue.open(write_rows(tmp_path / "words.jsonl", [each.as_dict() for each in training(0)]))
    head = listing(words, words.entries, 5)[0].split()
    assert head == ["episode", "task", "item", "split", "version", "score", "turns", "tokens", "time", "ended"]
