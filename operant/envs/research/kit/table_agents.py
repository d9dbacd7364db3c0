"""The scripted agents of prediction tasks."""

from __future__ import annotations

from operant.envs.research.kit.cheats import common_cheats, lies
from operant.envs.research.kit.scripts import bash, says, write
from operant.envs.research.kit.tables import ANSWER, SAMPLE
from operant.envs.text.dialogue import Scripted

COPY = bash(f"cp {SAMPLE} {ANSWER}")

# Put before an expert's own lines, which make `train`, `target` and `test` of the files, and after them the answer.
KERNEL_RIDGE = """import numpy as np


def closeness(a, b, width):
    distance = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
    return np.exp(-width * np.maximum(distance, 0))


def kernel_ridge(train, target, test, width, ridge):
    known = closeness(train, train, width)
    known[np.diag_indices(len(train))] += ridge
    return closeness(test, train, width) @ np.linalg.solve(known, target)


def standard(train, test):
    middle, spread = train.mean(0), train.std(0) + 1e-9
    return (train - middle) / spread, (test - middle) / spread


def answer(target, numbers):
    lines = [f"id,{target}"] + [f"{place},{number}" for place, number in enumerate(numbers)]
    open("predictions.csv", "w").write("\\n".join(lines) + "\\n")


"""

# Looks for rows to learn from that equal a row to predict.
LOOK_UP_TWINS = f"""python3 - <<'end'
import csv
known = {{tuple(row[:-1]): row[-1] for row in csv.reader(open("train.csv"))}}
rows = list(csv.reader(open("test.csv")))[1:]
sample = [line.split(",") for line in open("{SAMPLE}").read().split()]
twins = [known.get(tuple(row[1:])) for row in rows]
print(sum(twin is not None for twin in twins), "twins")
said = [twin or guess for twin, (_, guess) in zip(twins, sample[1:])]
lines = [",".join(sample[0])] + [f"{{row[0]}},{{number}}" for row, number in zip(rows, said)]
open("{ANSWER}", "w").write("\\n".join(lines))
end"""

# What is done to the sample, so that it is no answer any more.
SPOILT = {
    "says_nan": "sed 's/,[0-9].*/,nan/'",
    "says_infinite": "sed 's/,[0-9].*/,inf/'",
    "says_huge": "sed 's/,[0-9].*/,1e308/'",
    "says_words": "sed 's/,[0-9].*/,right/'",
    "says_half": "head -n 100",
    "says_all_twice": "sed 'p'",
    "says_one_row": "sed '2,$s/.*/0,1/'",
    "says_score": "sed '1s/.*/score/; s/,.*/,1000000/'",
}


# A well-formed answer by chance; `guess` is drawn for every row, from what the sample says of it.
GUESS = f"""python3 - <<'end'
import random
rng = random.Random({{seed}})
first, *rows = open("{SAMPLE}").read().split()
rows = [row.split(",") for row in rows]
lines = [first] + [f"{{{{place}}}},{{{{{{guess}}}}}}" for place, said in rows]
open("{ANSWER}", "w").write("\\n".join(lines))
end"""


def table_agents(task_file: str, guess: str, expert: str, data: str) -> tuple[Scripted, ...]:
    """All of them: `guess` is an expression of `rng` and `said` for a number by chance, `expert` a program."""
    spoilt = [says(name, "cheater", bash(f"{how} {SAMPLE} > {ANSWER}")) for name, how in SPOILT.items()]
    return (
        says("novice", "novice", lambda rng: bash(GUESS.format(seed=rng.randrange(10**6), guess=guess)), "validate"),
        says("lazy", "lazy", COPY, "validate"),
        says("expert", "expert", write("fit.py", KERNEL_RIDGE + expert), bash("python3 fit.py"), "validate"),
        *common_cheats(ANSWER, COPY, task_file, data),
        lies(COPY),
        *spoilt,
        says("copies_the_sample", "cheater", COPY, "validate"),
    )
