"""A small checkout in MLGym's form, of our own, with the faults that theirs were seen to have."""

from __future__ import annotations

from pathlib import Path

from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import Dialogue
from operant.envs.text.tasks import make_task

SHEETS = {
    "configs/tasks/parity.yaml": """
id: evenOrOdd
name: Even or odd
description: |-
  Say of each number in data/test.csv whether it is odd. {dataset_docs}
task_entrypoint: CSVSubmissionTasks
dataset_configs: [datasets/numbers.yaml]
starter_code: [data/parity/score.py]
baseline_scores:
  - Accuracy: 0.5
evaluation_paths: [score.py]
evaluation_read_only: true
sample_submission: data/parity/sample.csv
training_timeout: 20
""",
    "configs/datasets/numbers.yaml": """
name: numbers
description: There are eight of them.
data_path: data/parity/rows
is_local: true
""",
    "configs/tasks/coins.yaml": """
id: coinGame
name: Coins
description: Change play.py so that it wins.
task_entrypoint: PythonSubmissionTasks
starter_code: [data/coins/judge.py, data/coins/play.py, data/coins/target.py]
baseline_scores: [{Score: 0.0}]
evaluation_paths: [judge.py]
training_timeout: 20
""",
    "configs/tasks/far.yaml": """
id: farAway
name: Far
description: Its data is elsewhere.
task_entrypoint: CSVSubmissionTasks
dataset_configs: [datasets/far.yaml, datasets/none.yaml]
starter_code: [data/parity/score.py, data/none.py]
baseline_scores: [{r2: 0.5}]
evaluation_paths: [score.py]
""",
    "configs/datasets/far.yaml": "{name: far, data_path: hub/far, is_local: false}",
    "configs/tasks/model.yaml": """
id: bigModel
name: Big
description: |-
  Train it.
  SUBMISSION FORMAT:
  1. `checkpoints/`: the weights by pickle
  2. `config.yaml`: how they are read
task_entrypoint: ModelSubmissionTasks
starter_code: [data/model/src, data/model/score.py]
baseline_paths: [src/train.py]
baseline_scores: [{Reward Mean: 3.0}]
evaluation_paths: [score.py]
training_timeout: 20
""",
}
FILES = {
    "data/parity/rows/test.csv": "1\n2\n3\n4\n5\n6\n7\n8\n",
    "data/parity/rows/train.csv": "10,0\n11,1\n",
    "data/parity/rows/ground_truth.csv": "1\n0\n1\n0\n1\n0\n1\n0\n",
    "data/parity/sample.csv": "0\n" * 8,
    "data/parity/score.py": """
import argparse, json
asks = argparse.ArgumentParser()
asks.add_argument("--submission_file")
said = open(asks.parse_args().submission_file).read().split()
truth = open("data/ground_truth.csv").read().split()
print("scoring")
print(json.dumps({"Accuracy": sum(a == b for a, b in zip(said, truth)) / len(truth)}))
""",
    "data/model/src/config.yaml": "scale: 2\n",
    "data/model/src/weights.py": "class Weights:\n    pass\n",
    "data/model/src/train.py": """
import os, pickle
from weights import Weights
os.makedirs("checkpoints", exist_ok=True)
weights = Weights()
weights.each = {"a": 1.5, "b": 0.0}
pickle.dump(weights, open("checkpoints/config-0.pkl", "wb"))
""",
    "data/model/score.py": """
import argparse, json, pathlib, pickle, sys
from src import weights
sys.modules["weights"] = weights
asks = argparse.ArgumentParser()
asks.add_argument("--config_fname")
scale = float(open(asks.parse_args().config_fname).read().split()[1])
found = [pickle.load(open(path, "rb")) for path in pathlib.Path("checkpoints").glob("config*.pkl")]
print(json.dumps({"Reward Mean": scale * sum(sum(each.each.values()) for each in found)}))
""",
    "data/coins/judge.py": """
import json
from play import side
from target import other
print(json.dumps({"Score": sum(side(n) == other(n) for n in range(10)) / 10}))
""",
    "data/coins/play.py": "def side(n):\n    return 'none'\n",
    "data/coins/target.py": "def other(n):\n    return 'heads' if n % 3 else 'tails'\n",
}


def write_checkout(folder: Path) -> Path:
    for name, text in {**SHEETS, **FILES}.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def named(checkout: Path, name: str, **arguments: object) -> ResearchTask:
    task = make_task(f"mlgym:{checkout}/configs/tasks/{name}.yaml", arguments)
    assert isinstance(task, ResearchTask)
    return task


def begun(task: ResearchTask) -> Dialogue:
    return task.begin(task.problems("eval")[0], 0)
