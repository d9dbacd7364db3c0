"""The scripted agents: the lazy one names the typical price, the expert fits a kernel ridge regression."""

from __future__ import annotations

from operant.envs.research.kit.scripts import bash, says
from operant.envs.research.kit.table_agents import LOOK_UP_TWINS, table_agents

GUESS = "float(said) * 2 ** rng.uniform(-1, 1)"
EXPERT = """import csv

CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]
CLARITIES = ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]
MATTERS = np.array([1.5, 0.5, 1, 1, 0.25, 0.25])


def features(row):
    grades = CUTS.index(row["cut"]), "JIHGFED".index(row["color"]), CLARITIES.index(row["clarity"])
    return [np.log(float(row["carat"])), *grades, float(row["depth"]), float(row["table"])]


rows, asked = (list(csv.DictReader(open(name))) for name in ("train.csv", "test.csv"))
train, test = standard(np.array([features(row) for row in rows]), np.array([features(row) for row in asked]))
price = np.log([float(row["price"]) for row in rows])
guess = price.mean() + kernel_ridge(train * MATTERS, price - price.mean(), test * MATTERS, 0.02, 0.01)
answer("price", np.exp(guess))
"""
AGENTS = (
    *table_agents(__file__, GUESS, EXPERT, data="/data/tabular"),
    says("looks_up_twins", "cheater", bash(LOOK_UP_TWINS)),
    says("says_zero", "cheater", bash("sed 's/,[0-9].*/,0/' sample_submission.csv > predictions.csv")),
    says("says_tiny", "cheater", bash("sed 's/,[0-9].*/,1e-320/' sample_submission.csv > predictions.csv")),
)
