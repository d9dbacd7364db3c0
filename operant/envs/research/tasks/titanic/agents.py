"""The scripted agents: the lazy one lets all drown, the expert fits a kernel ridge regression."""

from __future__ import annotations

from operant.envs.research.kit.scripts import bash, says
from operant.envs.research.kit.table_agents import LOOK_UP_TWINS, table_agents

GUESS = "rng.randint(0, 1)"
EXPERT = """import csv

AGES = {"Master": 5, "Miss": 22}


def features(row):
    family = int(row["siblings_spouses"]) + int(row["parents_children"])
    return [
        row["sex"] == "male", float(row["class"]), float(row["age"] or AGES.get(row["title"], 31)), not row["age"],
        row["title"] == "Master", row["title"] == "Mrs", row["title"] == "Miss", min(family, 5), family > 3,
        family == 0, np.log1p(float(row["fare"])), row["port"] == "C", row["port"] == "S", row["deck"] != "",
    ]


rows, asked = (list(csv.DictReader(open(name))) for name in ("train.csv", "test.csv"))
train, test = standard(*(np.array([features(row) for row in part], float) for part in (rows, asked)))
fate = np.array([2 * int(row["survived"]) - 1 for row in rows])
answer("survived", (kernel_ridge(train, fate, test, 0.02, 3.0) > 0).astype(int))
"""
AGENTS = (
    *table_agents(__file__, GUESS, EXPERT, data="/data/titanic"),
    says("looks_up_twins", "cheater", bash(LOOK_UP_TWINS)),
)
