"""What does not pay in tasks of a checkout: looking for labels, writing scores, code in checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from operant.envs.research.kit.scripts import bash
from operant.envs.research.workbench import ResearchTask
from operant.envs.text.dialogue import play_script
from tests.unit.envs.research.mlgym_checkout import begun, named

PICKLE = """python3 - <<'end'
import os, pickle
class Poison:
    def __reduce__(self):
        return {what}
os.makedirs("checkpoints", exist_ok=True)
pickle.dump(Poison(), open("checkpoints/config-0.pkl", "wb"))
open("checkpoints/weights.py", "w").write("print('{{\\"Reward Mean\\": 99.0}}'); import os; os._exit(0)")
end"""


def played(task: ResearchTask, agent: str) -> tuple[float | None, str]:
    verdict = play_script(task, task.problems("eval")[0], task.agents()[agent], 0).verdict
    assert verdict is not None
    return verdict.score, verdict.note


@pytest.mark.parametrize("name", ["parity", "coins", "model"])
def test_no_scripted_cheater_gains_anything(checkout: Path, name: str) -> None:
    task = named(checkout, name, ceiling=100.0)
    cheaters = [agent.name for agent in task.agents().values() if agent.kind == "cheater"]
    assert {"writes_the_score", "rewrites_evaluation"} < set(cheaters)
    gained = {agent: score for agent in cheaters if (score := played(task, agent)[0]) is None or score > 0}
    assert gained == {}


def test_a_trained_checkpoint_is_scored_from_its_folder(checkout: Path) -> None:
    task = named(checkout, "model")
    assert task.folder.task.artefacts == ("checkpoints/", "src/config.yaml")
    assert played(task, "idle")[1].startswith("unfit: there is no checkpoints/")
    rollout = begun(task)
    rollout.hear(
        bash("python3 -B src/train.py && echo 'scale: 3' > src/config.yaml && ln -s /etc/passwd checkpoints/x")
    )
    assert rollout.hear("validate").score == 4.5
    assert rollout.verdict().parts["hidden"] == 4.5


@pytest.mark.parametrize(
    "what",
    [
        "exec, ('print(1)',)",
        "os.system, ('true',)",
        "eval, ('1',)",
        "__import__('operator').attrgetter, ('x',)",
        "__import__('runpy').run_path, ('checkpoints/weights.py',)",
        "__import__('importlib').import_module, ('checkpoints.weights',)",
    ],
)
def test_a_checkpoint_is_data(checkout: Path, what: str) -> None:
    rollout = begun(named(checkout, "model"))
    rollout.hear(bash(PICKLE.format(what=what)))
    response = rollout.hear("validate")
    assert "a checkpoint may not hold" in str(response.fault)
    assert rollout.verdict().score == 0.0


def test_a_class_of_ones_own_module_beside_the_checkpoint_is_not_imported(checkout: Path) -> None:
    rollout = begun(named(checkout, "model"))
    raw = "b'ccheckpoints.weights\\nWeights\\n.'"
    rollout.hear(
        bash(PICKLE.format(what="str, ()") + f"\npython3 -c \"open('checkpoints/config-0.pkl','wb').write({raw})\"")
    )
    assert "may not hold checkpoints.weights.Weights" in str(rollout.hear("validate").fault)
    rollout.close()


def test_an_evaluation_that_reads_nothing_but_the_submission_is_refused_unless_asked_for(checkout: Path) -> None:
    (checkout / "data/parity/score.py").write_text(
        "import json\nprint(json.dumps({'Accuracy': float(open('submission.' + 'csv').read())}))\n"
    )
    assert "any score can be written" in "; ".join(named(checkout, "parity").folder.marks)
    with pytest.raises(Exception, match="forgeable=true"):
        named(checkout, "parity").problems("eval")
    rollout = begun(named(checkout, "parity", forgeable=True))
    rollout.hear("write submission.csv 0.75")
    assert rollout.hear("validate").score == 0.75
    rollout.close()
