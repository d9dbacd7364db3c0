"""The scripted agents: the lazy one pushes right, the expert plans by value iteration and writes a fine table."""

from __future__ import annotations

from random import Random

from operant.envs.research.kit.cheats import common_cheats, lies
from operant.envs.research.kit.scripts import bash, says, write
from operant.envs.text.dialogue import Scripted

TABLE = "policy.txt"
RIGHT = f"write {TABLE} 2"

EXPERT = """import numpy as np

GRID, BANDS = 201, 200
speeds, places = np.linspace(-0.07, 0.07, GRID), np.linspace(-1.2, 0.6, GRID)


def landing(place, speed, action):
    speed = np.clip(speed + (action - 1) * 0.001 - 0.0025 * np.cos(3 * place), -0.07, 0.07)
    place = np.clip(place + speed, -1.2, 0.6)
    speed = np.where((place == -1.2) & (speed < 0), 0, speed)
    x, y = (place + 1.2) / 1.8 * (GRID - 1), (speed + 0.07) / 0.14 * (GRID - 1)
    i, j = np.minimum(y.astype(int), GRID - 2), np.minimum(x.astype(int), GRID - 2)
    return place >= 0.5, i, j, y - i, x - j


def steps_after(value, landed):
    arrived, i, j, up, right = landed
    low = (1 - right) * value[i, j] + right * value[i, j + 1]
    high = (1 - right) * value[i + 1, j] + right * value[i + 1, j + 1]
    return 1 + np.where(arrived, 0, (1 - up) * low + up * high)


mesh = np.meshgrid(places, speeds)
landings = [landing(*mesh, action) for action in range(3)]
value = np.zeros((GRID, GRID))
for _ in range(200):
    value = np.min([steps_after(value, landed) for landed in landings], axis=0)
    value[:, places >= 0.5] = 0
middles = (np.arange(BANDS) + 0.5) / BANDS
mesh = np.meshgrid(-1.2 + 1.8 * middles, -0.07 + 0.14 * middles)
table = np.argmin([steps_after(value, landing(*mesh, action)) for action in range(3)], axis=0)
open("policy.txt", "w").write("\\n".join("".join(map(str, row)) for row in table))
"""

# What must not count as a table.
STRANGE = {
    "says_negative": "-1 -1",
    "says_strong_engine": "9 9",
    "says_ragged": "0 22",
    "says_nan": "nan",
    "says_other_digits": "\N{SUPERSCRIPT TWO} \N{ARABIC-INDIC DIGIT TWO}",
    "says_too_large": "2" * 100_000,
    "says_score": '{"score": 1000000.0}',
    "says_nothing": " ",
}


def random_table(rng: Random) -> str:
    """The words that write a table of two bands of velocity and one or two of position."""
    columns = rng.randint(1, 2)
    rows = ["".join(rng.choice("012") for _ in range(columns)) for _ in range(2)]
    return f"write {TABLE} {' '.join(rows)}"


AGENTS: tuple[Scripted, ...] = (
    says("novice", "novice", random_table, "validate"),
    says("lazy", "lazy", RIGHT, "validate"),
    says("expert", "expert", write("plan.py", EXPERT), bash("python3 plan.py"), "validate"),
    *common_cheats(TABLE, RIGHT, __file__),
    lies(RIGHT),
    *(says(name, "cheater", write(TABLE, text)) for name, text in STRANGE.items()),
)
