"""The game in words: board, actions by name, answers that help, events."""

from __future__ import annotations

import re

import pytest

from operant.envs.hackmatrix.conformance.cases import read_setup
from operant.envs.hackmatrix.constants import ACTION_NAMES, FIRST_PROGRAM, PROGRAM_COUNT
from operant.envs.hackmatrix.faces.events import step_with_events
from operant.envs.hackmatrix.faces.reasons import EFFECTS, prospect, why_not
from operant.envs.hackmatrix.faces.render import ansi
from operant.envs.hackmatrix.faces.set_state import read_state
from operant.envs.hackmatrix.faces.text import TextGame, find_action
from operant.envs.hackmatrix.reference import Game

SIPHONED = "You siphon your cell and its four neighbours."


def put(setup: str) -> TextGame:
    text = TextGame(0)
    text.game.put(read_state(read_setup(setup)))
    return text


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("up", 0), (" UP\n", 0), ("move left", 2), ("`siphon`", 4), ("run Anti-V", 23), ("anti_v", 23),
        ("siphplus", 16), ("27", 27), ("action 3", 3), ("28", None), ("jump", None), ("", None), ("-1", None),
    ],
)  # fmt: skip
def test_names_of_actions(words: str, action: int | None) -> None:
    assert find_action(words) == action


def test_the_view_names_every_legal_action_and_no_other() -> None:
    text = put("P(3,3 s1 c9 e9); E virus(5,3) 2; T daemon(3,5) 2; D(2,3,4); own[8,16]")
    view = text.view()
    offered = re.findall(r"^  (\S+): (.+)$", view, re.MULTILINE)
    assert [ACTION_NAMES.index(name) for name, _ in offered] == text.game.legal()
    assert dict(offered)["up"] == "attack the virus at (5,3)"
    assert dict(offered)["right"] == "attack the transmission at (3,5)"
    assert dict(offered)["siph+"] == "one more data siphon (5c)"
    assert "[4]4" in view
    assert "\x1b" not in view


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("jmup", "There is no action 'jmup'. Did you mean up?"),
        ("xyzzy", "There is no action 'xyzzy'. Legal now"),
        ("down", "down is not legal: a block is in the way."),
        ("left", "left is not legal: that is beyond the edge."),
        ("siphon", "siphon is not legal: you have no data siphon."),
        ("row", "row is not legal: you do not own row."),
        ("warp", "warp is not legal: warp costs 2c 2e, and you have 1c 9e."),
        ("push", "push is not legal: push needs an enemy."),
    ],
)
def test_a_helpful_answer_changes_nothing(words: str, answer: str) -> None:
    text = put("P(3,0 c1 e9); D(2,0,4); own[5,8]")
    before = text.view()
    turn = text.act(words)
    assert turn.text.startswith(answer)
    assert turn.text.endswith("Legal now: up, right.")
    assert (turn.played, turn.reward, turn.done) == (False, 0.0, False)
    assert text.view() == before


def test_an_action_is_played_and_told() -> None:
    text = put("P(3,3); K(4,3)")
    turn = text.act("up")
    assert turn.text == "You go up to (4,3).\n+1 data siphons.\nreward +1.04, +1.04 in all"
    assert (turn.played, turn.done) == (True, False)
    assert turn.reward == pytest.approx(1.04)


def test_after_the_end_nothing_is_played() -> None:
    text = put("P(0,0 hp1 s1); E daemon(0,1) 3")
    assert text.act("siphon").done
    turn = text.act("up")
    assert (turn.text, turn.played, turn.done) == ("The game is over.", False, True)


@pytest.mark.parametrize(
    ("setup", "action", "events"),
    [
        ("P(3,3); E virus(4,3) 1", 0, ["You attack up.", "The virus at (4,3) is destroyed."]),
        ("P(3,3); E daemon(4,3) 3", 0, ["You attack up.", "The daemon at (4,3) is hit: 2 hp left."]),
        ("P(3,3); T virus(5,3) 3", 0, ["You attack up.", "The transmission at (5,3) is destroyed."]),
        ("P(0,0); T virus(5,5) 1", 0, ["You go up to (1,0).", "The transmission at (5,5) hatches: a virus with 2 hp."]),
        ("P(0,0); T cryptog(5,5) 1", 0, ["You go up to (1,0).", "The transmission at (5,5) hatches."]),
        ("P(0,0 e1); E daemon(0,1) 3; own[10]", 10, ["You run wait.", "-1 energy.", "You are attacked: -1 hp."]),
        ("P(0,0); E daemon(4,0) 3; D(2,0,1)", 0, ["You go up to (1,0).", "The daemon moves from (4,0) to (3,0)."]),
        ("P(0,0); E cryptog(5,5) 2", 0, ["You go up to (1,0)."]),
        ("P(0,0); E cryptog(2,2) 2", 0, ["You go up to (1,0).", "A cryptog comes into sight at (1,2)."]),
        ("P(3,3 s1); G(3,4,8)", 4, [SIPHONED, "-1 data siphons.", "New programs: warp."]),
        ("P(5,4 hp2)", 3, ["You go right to (5,5).", "+1 hp.", "You complete stage 1; stage 2 begins."]),
        ("P(5,4); stage 8", 3, ["You go right to (5,5).", "You complete stage 8 and win the game."]),
        ("P(0,0)", 1, ["down cannot be done here: the game is over."]),
    ],
)  # fmt: skip
def test_events(setup: str, action: int, events: list[str]) -> None:
    told = step_with_events(put(setup).game, action)[1]
    assert [each for each in told if not each.startswith("New transmissions")] == events


def test_every_program_has_words() -> None:
    game = put("P(3,3)").game
    for program in range(PROGRAM_COUNT):
        assert EFFECTS[program] in prospect(game, FIRST_PROGRAM + program)
        assert why_not(game, FIRST_PROGRAM + program) == f"you do not own {ACTION_NAMES[FIRST_PROGRAM + program]}"


def test_a_hidden_cryptog_is_never_told() -> None:
    game = put("P(0,0 e5); E cryptog(4,4) 2; own[10]").game
    _, told = step_with_events(game, 10)
    assert not any("cryptog" in each for each in told)
    assert "C2" not in ansi(game.state, colour=False)
    assert "C?" in ansi(game.state, colour=False)


def test_colours_change_nothing_but_the_colours() -> None:
    for seed in range(5):
        state = Game(seed).state
        assert re.sub(r"\x1b\[[\d;]*m", "", ansi(state)) == ansi(state, colour=False)
