"""A task's folder: what it may say, and what is said of mistakes in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from operant.envs.research.folder import load_folder
from operant.envs.research.grading import Work
from operant.envs.research.packages import packages
from operant.envs.text.tasks import make_task
from operant.errors import OperantError, UsageError
from tests.unit.envs.research.conftest import GUESS


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GUESS, tmp_path / "mine"))


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "task.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("baseline: 0.0", "basline: 0.0", r"task\.yaml:\d+:1.*there is no setting basline"),
        ("direction: up", "direction: higher", r"task\.yaml:\d+.*metric\.direction"),
        ("artefacts: [solution.py]", "artefacts: [../solution.py]", "plain path below the workspace"),
        ("artefacts: [solution.py]", "artefacts: []", "artefacts"),
        ("ceiling: 1.0", "ceiling: -1.0", "the ceiling must lie up from the baseline"),
        ("ceiling: 1.0", "ceiling: .nan", "finite"),
        ("turns: 8", "turns: 0", r"limits\.turns"),
        ("name: guess", "name: Guess!", "name"),
        ("noise: 0.0", "visible: [nowhere.txt]", r"task\.yaml:\d+.*visible: there is no nowhere.txt"),
        ("noise: 0.0", "visible: [data:rows.csv]", "visible: there is no data:rows.csv"),
        ("name: guess", "name: [", "task.yaml"),
    ],
)
def test_a_mistake_is_told_with_its_place(mine: Path, old: str, new: str, said: str) -> None:
    change(mine, old, new)
    with pytest.raises(UsageError) as caught:
        load_folder(str(mine))
    assert re.search(said, str(caught.value).replace("\n", " ")), str(caught.value)


def test_what_is_missing_is_told(mine: Path, tmp_path: Path) -> None:
    change(mine, "metric:", "# metric:")
    with pytest.raises(UsageError, match="metric is missing"):
        load_folder(str(mine))
    with pytest.raises(UsageError, match=r"there is no task\.yaml"):
        load_folder(str(tmp_path))


def test_a_folder_without_a_grader_is_no_task(mine: Path) -> None:
    (mine / "grader.py").unlink()
    with pytest.raises(UsageError, match=r"no grader\.py"):
        load_folder(str(mine))


def test_a_grader_that_cannot_be_loaded_is_named(mine: Path) -> None:
    (mine / "grader.py").write_text("import no_such_module\n")
    with pytest.raises(UsageError, match="no_such_module") as caught:
        _ = load_folder(str(mine)).grader
    assert caught.value.place
    assert caught.value.place.endswith("grader.py")


def test_the_files_of_a_folder_may_import_each_other(mine: Path) -> None:
    (mine / "rules.py").write_text("SCORE = 0.25\n")
    (mine / "grader.py").write_text("from .rules import SCORE\n\ndef grade(work):\n    return SCORE\n")
    folder = load_folder(str(mine))
    assert folder.grade(Work({}, "hidden", 0, folder.hidden)) == 0.25


def test_data_files_are_found_below_the_data_folder(mine: Path, tmp_path: Path) -> None:
    change(mine, "noise: 0.0", 'data: {rows.csv: "rows/all.csv"}\nvisible: ["data:rows.csv"]')
    folder = load_folder(str(mine))
    with pytest.raises(UsageError, match=r"rows/all\.csv"):
        folder.data(str(tmp_path))
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "all.csv").write_text("a,b\n")
    found = folder.data(str(tmp_path))
    assert folder.files(found, 0)["rows.csv"] == b"a,b\n"
    assert "README.md" not in folder.files(found, 0), "only what is named is visible"


def test_hidden_files_never_are_among_the_visible(mine: Path) -> None:
    assert not any("secret" in name for name in load_folder(str(mine)).files({}, 0))


def test_a_folder_is_a_task_by_its_path_and_by_its_file(mine: Path) -> None:
    for name in (str(mine), str(mine / "task.yaml")):
        task = make_task(name, {"turns": 3})
        assert (task.name, task.recipe[0]) == ("guess", name)


def test_arguments_are_checked(mine: Path) -> None:
    for arguments, said in (
        ({"style": "brief"}, "style"),
        ({"keep": "worst"}, "keep"),
        ({"turns": 0}, "turns"),
        ({"instances": 10**7}, "instances"),
        ({"turn": 3}, "no argument"),
    ):
        with pytest.raises(UsageError, match=said):
            make_task(str(mine), arguments)


def test_packages_are_shown_one_by_one() -> None:
    shown = packages(("numpy",))
    assert all(Path(folder).name.startswith("numpy") for folder in shown.folders)
    assert "PYTHONPATH" in shown.environment
    names = {Path(folder).name for folder in packages(("gymnasium",)).folders}
    assert {"gymnasium", "numpy", "cloudpickle", "typing_extensions.py"} <= names, "with those that they need"
    with pytest.raises(OperantError, match="not installed"):
        packages(("no_such_package",))
