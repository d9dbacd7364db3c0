"""The scripted agents: the lazy one sees shirts everywhere, the expert fits a kernel ridge regression."""

from __future__ import annotations

from operant.envs.research.kit.scripts import bash, says
from operant.envs.research.kit.table_agents import table_agents

GUESS = "rng.randint(0, 9)"
EXPERT = """train, test = (np.load(f"{name}_images.npy").reshape(-1, 784) / 255 for name in ("train", "test"))
labels = np.load("train_labels.npy")
answer("label", kernel_ridge(train, np.eye(10)[labels] - 0.1, test, 0.01, 0.1).argmax(1))
"""
LOOK_UP_TWINS = """python3 - <<'end'
import numpy as np
known = {picture.tobytes(): label for picture, label in zip(np.load("train_images.npy"), np.load("train_labels.npy"))}
said = [known.get(picture.tobytes(), 0) for picture in np.load("test_images.npy")]
open("predictions.csv", "w").write("id,label\\n" + "\\n".join(f"{at},{label}" for at, label in enumerate(said)))
end"""
AGENTS = (
    *table_agents(__file__, GUESS, EXPERT, data="/data/fashion-mnist"),
    says("looks_up_twins", "cheater", bash(LOOK_UP_TWINS)),
)
