"""What can be computed from the code alone does not decide a hidden score: it is drawn from the secret."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from operant.envs.research.kit.matches import GAMES
from operant.envs.research.kit.repeated import Game
from operant.envs.research.tasks.prisoners_dilemma.opponents import GAME
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.task import Problem

TASK = "prisoners_dilemma"
# Cooperate so many rounds, then defect: the best replies to most of the pool are among these.
LINES = ["C" * rounds + "D" * (GAME.rounds - rounds) for rounds in range(GAME.rounds + 1)]
# Its questions come in the order of the games, round by round.
PROGRAM = """```write strategy.py
LINES = {lines!r}
asked = iter(range(len(LINES) * len(LINES[0])))

def move(mine, theirs):
    return LINES[next(asked) % len(LINES)][len(mine)]
```"""


def public_seed(*parts: object) -> int:
    """A hash of what everybody knows, as hidden seeds once were."""
    digest = blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def best_lines(game: Game, seed: int) -> list[str]:
    """For each game the line that earns most against the opponent and the luck which this seed draws."""
    rng = np.random.default_rng(seed)
    met = rng.choice(len(game.pool), size=GAMES, p=game.weights)
    luck = np.array([rng.random(GAMES) for _ in range(game.rounds)])

    def earned(line: str, number: int) -> float:
        theirs, total = "", 0.0
        for at, move in enumerate(line):
            first = luck[at, number] < game.pool[met[number]].first(theirs, line[:at])
            theirs += game.moves[0] if first else game.moves[1]
            total += game.payoff[move + theirs[-1]]
        return total

    return [max(LINES, key=lambda line: earned(line, number)) for number in range(GAMES)]


def hidden_score(task: ResearchTask, problem: Problem, *said: str) -> float:
    rollout = task.begin(problem, 0)
    for text in (*said, "submit"):
        rollout.hear(text)
    verdict = rollout.verdict()
    rollout.close()
    return verdict.parts["hidden"]


@pytest.mark.usefixtures("sandboxes")
def test_answers_computed_from_the_public_hash_do_not_beat_the_optimum() -> None:
    task = ResearchTask(TASK)
    problem = task.problems("eval")[0]
    lines = best_lines(GAME, public_seed(TASK, problem.answer["seed"], "hidden"))
    stated = task.folder.task
    assert hidden_score(task, problem, PROGRAM.format(lines=lines)) < stated.ceiling + 3 * stated.noise


@pytest.mark.usefixtures("sandboxes")
def test_the_hidden_score_follows_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = []
    for secret in ("the first secret", "the second secret", "the first secret"):
        file = tmp_path / secret.replace(" ", "_")
        file.write_text(secret)
        file.chmod(0o600)
        monkeypatch.setenv("OPERANT_SECRET_FILE", str(file))
        task = ResearchTask(TASK)
        scores.append(hidden_score(task, task.problems("eval")[0], "write policy.txt CCDCD"))
    assert scores[0] == scores[2] != scores[1]
