"""The tables of the rules: plain numbers and tuples that every form of the game reads.

Indices are the law's own: action 0..27, program 0..22 (its action is 5 more), enemy type 0..3.
"""

from __future__ import annotations

from typing import NamedTuple

SIZE = 6
CELLS = SIZE * SIZE
CORNERS = ((0, 0), (0, 5), (5, 0), (5, 5))
STAGES = 8
STEP_LIMIT = 1000

START_HP = 3
MAX_HP = 3
START_ATTACK = 1
BONUS_CREDITS = 10
BONUS_ENERGY = 11
BONUS_SIPHONS = 1

# Capacities of all forms
MAX_ENEMIES = 36
MAX_TRANSMISSIONS = 36
MAX_PENDING = 36
MAX_HISTORY = 8

# Blocks and resources of a new stage
MIN_BLOCKS = 5
MAX_BLOCKS = 11
BLOCK_ATTEMPTS = 100
MAX_POINTS = 9
QUESTION_ODDS = 10
AMOUNTS = (1,) * 9 + (2,) * 9 + (3,) * 2

# Scheduled tasks
FIRST_INTERVAL = 12
MIN_INTERVAL = 4
SIPHON_DELAY = 5
STAGE_INTERVALS = tuple(13 - stage for stage in range(1, STAGES + 1))

# Directions, always in this order. Row 0 is the bottom of the screen.
DELTAS = ((1, 0), (-1, 0), (0, -1), (0, 1))
UP, DOWN, LEFT, RIGHT, SIPHON = range(5)
FIRST_PROGRAM = 5
DIRECTION_NAMES = ("up", "down", "left", "right")


class EnemyKind(NamedTuple):
    """One row of the table of enemies."""

    name: str
    max_hp: int
    moves: int


ENEMIES = (
    EnemyKind("virus", 2, 2),
    EnemyKind("daemon", 3, 1),
    EnemyKind("glitch", 2, 1),
    EnemyKind("cryptog", 2, 1),
)
VIRUS, DAEMON, GLITCH, CRYPTOG = range(4)
ENEMY_NAMES = tuple(kind.name for kind in ENEMIES)


class Program(NamedTuple):
    """One row of the table of programs; `spawn` is the spawn count of a generated block that holds it."""

    name: str
    credits: int
    energy: int
    spawn: int


PROGRAMS = (
    Program("push", 0, 2, 4),
    Program("pull", 0, 2, 4),
    Program("crash", 3, 2, 6),
    Program("warp", 2, 2, 5),
    Program("poly", 1, 1, 3),
    Program("wait", 0, 1, 1),
    Program("debug", 3, 0, 4),
    Program("row", 3, 1, 2),
    Program("col", 3, 1, 2),
    Program("undo", 1, 0, 3),
    Program("step", 0, 3, 4),
    Program("siph+", 5, 0, 7),
    Program("exch", 4, 0, 3),
    Program("show", 2, 0, 2),
    Program("reset", 0, 4, 2),
    Program("calm", 2, 4, 6),
    Program("d_bom", 3, 0, 4),
    Program("delay", 1, 2, 4),
    Program("anti-v", 3, 0, 4),
    Program("score", 0, 5, 5),
    Program("reduc", 2, 1, 3),
    Program("atk+", 4, 4, 8),
    Program("hack", 2, 2, 4),
)
(
    PUSH, PULL, CRASH, WARP, POLY, WAIT, DEBUG, ROW, COL, UNDO, STEP, SIPH_PLUS,
    EXCH, SHOW, RESET, CALM, D_BOM, DELAY, ANTI_V, SCORE, REDUC, ATK_PLUS, HACK,
) = range(23)  # fmt: skip
PROGRAM_NAMES = tuple(program.name for program in PROGRAMS)
PROGRAM_COUNT = len(PROGRAMS)

ACTION_NAMES = (*DIRECTION_NAMES, "siphon", *PROGRAM_NAMES)
ACTION_COUNT = len(ACTION_NAMES)

EXCH_ENERGY = 4
DELAY_TURNS = 3
ATK_PLUS_USES = 2
HIT_BY_BOMB = 1
HIT_BY_ANTI_V = 1

# Rewards
STAGE_PAY = (1, 2, 4, 8, 16, 32, 64, 100)
FINAL_STAGE_PAY = 64  # what stage 8 pays in play; the last entry of the table is never paid
STEP_PENALTY = -0.01
SCORE_PAY = 0.5
KILL_PAY = 0.3
PICKUP_PAY = 1.0
DISTANCE_PAY = 0.05
VICTORY_PAY = 500.0
VICTORY_SCORE_PAY = 100.0
DEATH_SHARE = -0.5
SIPHON_DEATH_PAY = -10.0
RESOURCE_PAY = 0.05
HOLDING_PAY = 0.01
WASTE_PAY = -0.3
WASTE_HP = 2
QUALITY_SHARE = -0.5

REWARD_PARTS = (
    "step_penalty",
    "stage_completion",
    "score_gain",
    "kills",
    "data_siphon",
    "distance_shaping",
    "damage_penalty",
    "hp_recovery",
    "victory",
    "death_penalty",
    "siphon_death_penalty",
    "resource_gain",
    "resource_holding",
    "program_waste",
    "siphon_quality",
)
# What the JSON-lines face calls them; the step penalty is in no breakdown.
REWARD_KEYS = {
    "stage_completion": "stage",
    "score_gain": "score",
    "kills": "kills",
    "data_siphon": "dataSiphon",
    "distance_shaping": "distance",
    "damage_penalty": "damagePenalty",
    "hp_recovery": "hpRecovery",
    "victory": "victory",
    "death_penalty": "death",
    "siphon_death_penalty": "siphonDeathPenalty",
    "resource_gain": "resourceGain",
    "resource_holding": "resourceHolding",
    "program_waste": "programWaste",
    "siphon_quality": "siphonQuality",
}

# Addresses of draws
AT_CORNER, AT_BONUS, AT_EXIT, AT_BLOCKS, AT_WARP, AT_TASK = range(6)
AT_POLY = 100
AT_ORDER = 200
AT_RESOURCE = 300
AT_CONTENT = 400
AT_STAGE_SPAWN = 500
AT_SIPHON_SPAWN = 600
AT_ATTEMPT = 1000

# Observation arrays
PLAYER_FEATURES = 10
CHANNELS = 42
OBSERVATION_SIZE = PLAYER_FEATURES + PROGRAM_COUNT + CELLS * CHANNELS
CH_ENEMY, CH_ENEMY_HP, CH_STUNNED, CH_FROM_SIPHON = 0, 4, 5, 6
CH_BLOCK, CH_POINTS, CH_SIPHONED, CH_PROGRAM, CH_SPAWN = 7, 10, 11, 12, 35
CH_TRANSMISSION, CH_CREDITS, CH_ENERGY, CH_PICKUP, CH_EXIT, CH_CENTRE = 36, 37, 38, 39, 40, 41
