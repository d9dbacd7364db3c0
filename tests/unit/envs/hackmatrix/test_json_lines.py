"""The JSON-lines face: every message, every error."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from operant.envs.hackmatrix.constants import REWARD_KEYS
from operant.envs.hackmatrix.faces.json_lines import Server
from tests.unit.envs.hackmatrix.forms import ROOT, SERVE, JsonLines

PLAYER = {"player": {"row": 3, "col": 3}}


def ask(server: Server, request: object) -> dict[str, Any]:
    return json.loads(server.reply(json.dumps(request).encode()))


def put(server: Server, **state: object) -> dict[str, Any]:
    return ask(server, {"action": "setState", "state": PLAYER | state})


@pytest.fixture
def server() -> Server:
    return Server()


def test_questions_before_any_game(server: Server) -> None:
    zeros = dict.fromkeys(
        ("scheduledTaskInterval", "nextScheduledTaskTurn", "pendingSiphonTransmissions", "turnCount"), 0
    )
    assert ask(server, {"action": "getValidActions"}) == {"validActions": []}
    assert ask(server, {"action": "getInternalState"}) == zeros | {"enemies": []}
    assert ask(server, {"action": "getActionSpace"}) == {"actionSpaceSize": 28}
    assert ask(server, {"action": "getObservationSpace"}) == {"gridSize": 6, "playerFeatures": 9, "cellFeatures": 20}
    assert ask(server, {"action": "step", "actionIndex": 0}) == {"error": "Game not initialized"}


@pytest.mark.parametrize(
    "line",
    [
        b"", b"no json", b"[]", b"7", b"{}", b'{"action": 3}', b'{"action": null}', b'{"action": "reset"', b"\xff\xfe",
        b'{"action": "step", "actionIndex": "0"}', b'{"action": "step", "actionIndex": 1.5}',
        b'{"action": "step", "actionIndex": true}', b'{"action": "reset", "seed": "7"}',
        b'{"action": "reset", "x": NaN}',
        b'{"action": "setState", "state": {}}', b'{"action": "setState", "state": []}',
        b'{"action": "setState", "state": {"player": {"row": 1}}}',
        b'{"action": "setState", "state": {"player": {"row": 1, "col": 1, "hp": "3"}}}',
        b'{"action": "setState", "state": {"player": {"row": 1, "col": 9}, "stage": "two"}}',
        b'{"action": "setState", "state": {"player": {"row": 1, "col": 1}, "enemies": [{"row": 1, "col": 2}]}}',
        b'{"action": "setState", "state": {"player": {"row": 1, "col": 1}, "ownedPrograms": [null]}}',
        b'{"action": "step", "actionIndex": 99999999999999999999}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_invalid_command(server: Server, line: bytes) -> None:
    assert json.loads(server.reply(line)) == {"error": "Invalid command"}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"action": "jump"}, "Unknown command: jump"),
        ({"action": "step"}, "Missing actionIndex"),
        ({"action": "step", "actionIndex": None}, "Missing actionIndex"),
        ({"action": "step", "actionIndex": 28}, "Invalid action index: 28"),
        ({"action": "step", "actionIndex": -1}, "Invalid action index: -1"),
        ({"action": "setState"}, "Missing state data for setState command"),
        ({"action": "setState", "state": None}, "Missing state data for setState command"),
    ],
)
def test_other_errors(server: Server, request_: object, error: str) -> None:
    assert ask(server, request_) == {"error": error}


def enemy(**fields: object) -> dict[str, object]:
    return {"type": "virus", "row": 1, "col": 1, "hp": 2} | fields


TRANSMISSION = {"row": 1, "col": 1, "turnsRemaining": 1, "enemyType": "virus"}


@pytest.mark.parametrize(
    "state",
    [
        {"player": {"row": 6, "col": 0}},
        {"enemies": [enemy(col=-1)]},
        {"enemies": [enemy(hp=0)]},
        {"enemies": [enemy()] * 37},
        {"transmissions": [TRANSMISSION | {"row": 6}]},
        {"transmissions": [TRANSMISSION] * 37},
        {"stage": 0},
        {"stage": 9},
    ],
)
def test_an_impossible_state_changes_nothing(server: Server, state: dict[str, Any]) -> None:
    before = put(server, turn=4)["observation"]
    assert ask(server, {"action": "setState", "state": PLAYER | state})["error"].startswith("Invalid state: ")
    after = ask(server, {"action": "step", "actionIndex": 27})["observation"]
    assert after == before


def test_set_state_forgives(server: Server) -> None:
    seen = put(
        server,
        player={"row": 3, "col": 3, "hp": 7, "stamina": 3},
        enemies=[enemy(type="VIRUS"), enemy(type="troll", row=99)],
        transmissions=[TRANSMISSION | {"turnsRemaining": -4}],
        blocks=[
            {"row": 9, "col": 9, "type": "data"},
            {"row": 0, "col": 1, "type": "wall", "siphoned": True},
            {"row": 0, "col": 2, "type": "program", "programType": "Anti_V", "programActionIndex": 7},
            {"row": 0, "col": 3, "type": "program", "programType": "nothing"},
            {"row": 0, "col": 4, "type": "data"},
        ],
        resources=[{"row": 7, "col": 0, "credits": 1}, {"row": 0, "col": 4, "dataSiphon": True, "credits": 2}],
        ownedPrograms=[27, 4, 28, 5, 27],
        stage=None,
    )["observation"]
    cells = seen["cells"]
    assert (seen["playerHP"], seen["ownedPrograms"], seen["stage"]) == (3, [27, 5], 1)
    assert cells[1][1]["enemy"]["type"] == "virus"
    assert cells[1][1]["transmission"] == {"turnsUntilSpawn": 1}
    assert [cell["col"] for cell in cells[0] if "block" in cell] == [2]
    assert cells[0][2]["block"]["programActionIndex"] == 23
    assert cells[0][4]["isDataSiphon"]
    assert "credits" not in cells[0][4]


def test_a_data_block_of_which_nothing_is_said(server: Server) -> None:
    block = put(server, blocks=[{"row": 4, "col": 3, "type": "data"}])["observation"]["cells"][4][3]["block"]
    assert (block["points"], block["transmissionSpawnCount"]) == (5, 5)


def test_reply_to_a_step(server: Server) -> None:
    put(server)
    reply = ask(server, {"action": "step", "actionIndex": 0})
    assert list(reply) == ["observation", "reward", "done", "info"]
    assert list(reply["info"]) == ["reward_breakdown"]
    assert set(reply["info"]["reward_breakdown"]) == set(REWARD_KEYS.values())
    assert reply["reward"] == pytest.approx(sum(reply["info"]["reward_breakdown"].values()) - 0.01)


def test_flags_of_a_step(server: Server) -> None:
    put(server, player={"row": 5, "col": 4})
    assert ask(server, {"action": "step", "actionIndex": 3})["info"]["stage_complete"] is True
    put(server, player={"row": 0, "col": 0, "hp": 1}, enemies=[enemy(row=1, col=0), enemy(row=0, col=1)])
    assert ask(server, {"action": "step", "actionIndex": 0})["info"]["death"] is True
    assert ask(server, {"action": "step", "actionIndex": 4})["info"]["invalid_action"] is True


def test_a_question_block_tells_nothing(server: Server) -> None:
    for seed in range(40):
        cells = ask(server, {"action": "reset", "seed": seed})["observation"]["cells"]
        blocks = [cell["block"] for row in cells for cell in row if "block" in cell]
        found = [block for block in blocks if block["blockType"] == "question"]
        if found:
            assert found[0] == {"blockType": "question", "isSiphoned": False}
            return
    pytest.fail("no question block in 40 games")


def test_the_same_seed_and_actions_give_the_same_replies() -> None:
    def game(server: Server) -> list[Any]:
        replies = [ask(server, {"action": "reset", "seed": 5})]
        for k in range(30):
            legal = ask(server, {"action": "getValidActions"})["validActions"]
            replies.append(ask(server, {"action": "step", "actionIndex": legal[k % len(legal)]}))
        return [*replies, ask(server, {"action": "reset"})]

    played = Server()
    ask(played, {"action": "reset"})
    assert game(played) == game(Server())


def test_set_state_leaves_the_draws_alone() -> None:
    def tasks(*, restart: bool) -> list[Any]:
        server = Server()
        ask(server, {"action": "reset", "seed": 3})
        if restart:
            put(server)
        put(server, turn=11)
        return [ask(server, {"action": "step", "actionIndex": action}) for action in (0, 1, 2, 3)]

    assert tasks(restart=True) == tasks(restart=False)


def test_after_done_the_game_goes_on(server: Server) -> None:
    put(server, player={"row": 0, "col": 0})
    assert ask(server, {"action": "step", "actionIndex": 1})["done"]
    assert not ask(server, {"action": "step", "actionIndex": 0})["done"]


def test_a_real_process_answers_line_by_line_and_ends_with_its_input() -> None:
    face = JsonLines("--headless-cli")
    assert face.ask({"action": "reset", "seed": 7})["observation"]["playerRow"] == 5
    assert face.say(b"") == b'{"error": "Invalid command"}\n'
    assert face.valid_actions() == [1, 2]
    assert face.close() == 0


def test_logs_go_to_standard_error() -> None:
    lines = b'nonsense\n{"action": "getActionSpace"}\n'
    done = subprocess.run([*SERVE, "--debug"], input=lines, capture_output=True, check=True, cwd=ROOT)
    assert done.stdout == b'{"error": "Invalid command"}\n{"actionSpaceSize": 28}\n'
    assert b"getActionSpace" in done.stderr
