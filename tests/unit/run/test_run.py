from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy_trainer import make_run, make_spec

from operant.errors import RunError, UsageError
from operant.run.layout import session_path, trial_path
from operant.run.lock import RunLock
from operant.run.run import Experiment, Run, create_experiment, find_sessions, list_experiments, resolve


def make_experiment(root: Path, name: str = "toy", sessions: int = 0, **settings) -> Experiment:
    spec = {**make_spec(), "name": name}
    experiment = create_experiment(
        root, spec, source_text="# mine\nname: toy\n", source_suffix=".yaml", command=["operant", "train"], **settings
    )
    for index in range(sessions):
        make_run(session_path(trial_path(experiment.path, 0), index))
    return experiment


def set_created(experiment: Experiment, created: str) -> None:
    file = experiment.path / "experiment.json"
    file.write_text(json.dumps({**experiment.document, "created": created}))


def test_a_run_is_what_was_created(tmp_path: Path):
    parent = {"run": "runs/other", "checkpoint": "000000000010", "frames": 10}
    made = Run.create(tmp_path / "s", name="toy", spec=make_spec(), seed=5, session=2, threads=3, parent=parent)
    assert made == Run.open(tmp_path / "s")
    assert (made.name, made.seed, made.index, made.threads, made.parent) == ("toy", 5, 2, 3, parent)
    assert (made.state, made.error, made.attempts, made.max_frame) == ("new", None, 0, 60)
    assert made.spec == make_spec()
    assert [entry.name for entry in made.path.iterdir()] == ["run.json"]


def test_an_empty_directory_may_be_used(tmp_path: Path):
    (tmp_path / "s").mkdir()
    assert make_run(tmp_path / "s").state == "new"


def test_a_used_directory_is_refused_with_three_ways_out(tmp_path: Path):
    make_run(tmp_path / "s")
    with pytest.raises(UsageError, match="holds a run already") as caught:
        make_run(tmp_path / "s")
    remedy = str(caught.value.remedy)
    assert f"operant resume {tmp_path}/s" in remedy
    assert "another name or directory" in remedy
    assert f"rm -r {tmp_path}/s" in remedy
    assert caught.value.exit_code == 2


def test_other_peoples_files_are_never_mixed_with_a_run(tmp_path: Path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").write_text("precious")
    (tmp_path / "file").write_text("precious")
    for name in ("s", "file"):
        with pytest.raises(UsageError, match="is used already"):
            make_run(tmp_path / name)
    assert sorted(entry.name for entry in tmp_path.rglob("*")) == ["file", "s", "thesis.tex"]
    with pytest.raises(UsageError, match="nothing can be written there"):
        make_run(tmp_path / "file" / "s")


def test_opening_says_what_is_missing(tmp_path: Path):
    with pytest.raises(UsageError, match=r"it has no run\.json"):
        Run.open(tmp_path)
    with pytest.raises(UsageError, match="no such directory"):
        Run.open(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1, "name": "x"}'])
def test_a_damaged_run_file_is_reported(tmp_path: Path, content: str):
    make_run(tmp_path / "s")
    (tmp_path / "s" / "run.json").write_text(content)
    with pytest.raises(RunError, match="damaged") as caught:
        Run.open(tmp_path / "s")
    assert caught.value.place == str(tmp_path / "s" / "run.json")


def test_a_run_of_a_newer_version_is_not_misread(tmp_path: Path):
    run = make_run(tmp_path / "s")
    (tmp_path / "s" / "run.json").write_text(json.dumps({**run.document, "format": 2}))
    with pytest.raises(UsageError, match="newer Operant"):
        Run.open(tmp_path / "s")


def test_a_running_state_without_a_process_reads_stopped(tmp_path: Path):
    run = make_run(tmp_path / "s")
    run.record(state="running")
    assert run.state == "stopped"
    lock = RunLock(tmp_path / "s" / "lock")
    lock.acquire()
    assert run.state == "running"
    run.record(state="done")
    lock.release()
    assert run.state == "done"


def test_an_end_between_two_looks_is_not_taken_for_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = make_run(tmp_path / "s")
    run.record(state="running")

    def finish_just_now(path: Path) -> bool:
        run.record(state="done")
        return False

    monkeypatch.setattr("operant.run.run.is_held", finish_just_now)
    assert run.state == "done"


def test_an_experiment_keeps_its_source_word_for_word(tmp_path: Path):
    experiment = make_experiment(tmp_path)
    assert experiment.path.parent == tmp_path / "toy"
    assert (experiment.path / "spec.yaml").read_text() == "# mine\nname: toy\n"
    assert experiment.spec == make_spec()
    assert set(experiment.document) == {"format", "spec", "created", "parent", "command"}
    assert experiment.trials() == []
    with pytest.raises(RunError, match="holds no session"):
        find_sessions(experiment.path)


def test_experiments_of_the_same_second_get_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("operant.run.run.stamp", lambda now: "20260101-120000")
    names = [make_experiment(tmp_path).path.name for _ in range(11)]
    assert names == ["20260101-120000", *(f"20260101-120000-{number}" for number in range(2, 12))]
    for experiment in list_experiments(tmp_path):
        set_created(experiment, "2026-01-01")
    assert [experiment.path.name for experiment in list_experiments(tmp_path)] == names


def test_a_given_directory_is_used_or_refused(tmp_path: Path):
    assert make_experiment(tmp_path, out=tmp_path / "mine").path == tmp_path / "mine"
    with pytest.raises(UsageError, match="holds a run already"):
        make_experiment(tmp_path, out=tmp_path / "mine")


def test_sessions_are_found_from_every_level(tmp_path: Path):
    experiment = make_experiment(tmp_path, sessions=11)
    trial = experiment.trials()[0]
    assert [run.path.name for run in trial.sessions()] == [f"session_{index}" for index in range(11)]
    assert find_sessions(experiment.path) == find_sessions(trial.path) == trial.sessions()
    assert find_sessions(trial.path / "session_3") == [trial.sessions()[3]]
    with pytest.raises(UsageError, match="not a run directory"):
        find_sessions(tmp_path)


def test_names_resolve_to_the_newest_experiment(tmp_path: Path):
    old, new = make_experiment(tmp_path, sessions=1), make_experiment(tmp_path, sessions=1)
    other = make_experiment(tmp_path, "other")
    assert resolve("toy", tmp_path) == new.path
    assert resolve(f"toy/{old.path.name}", tmp_path) == old.path
    assert resolve(str(old.path), tmp_path) == old.path
    assert resolve(str(old.path / "trial_000"), tmp_path) == old.path / "trial_000"
    assert resolve(f"toy/{old.path.name}/trial_000/session_0", tmp_path) == old.path / "trial_000" / "session_0"
    assert resolve(str(tmp_path / "toy"), "elsewhere") == new.path
    assert resolve("latest", tmp_path) == other.path
    set_created(old, "2999-01-01")
    assert resolve("toy", tmp_path) == resolve("latest", tmp_path) == old.path


def test_a_folder_of_the_same_name_here_does_not_hide_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy").mkdir()
    experiment = make_experiment(Path("runs"))
    assert resolve("toy") == experiment.path


def test_unknown_names_get_the_nearest(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no run 'toy', nor any other") as caught:
        resolve("toy", tmp_path)
    assert "operant train" in str(caught.value.remedy)
    with pytest.raises(UsageError, match="nor any other"):
        resolve("latest", tmp_path)
    make_experiment(tmp_path, "ppo_cartpole")
    with pytest.raises(UsageError, match=r"did you mean ppo_cartpole"):
        resolve("ppo_cartpol", tmp_path)
    with pytest.raises(UsageError, match=r"there are ppo_cartpole"):
        resolve("zzz", tmp_path)


def test_a_damaged_experiment_does_not_hide_the_others(tmp_path: Path):
    broken, whole = make_experiment(tmp_path), make_experiment(tmp_path)
    (broken.path / "experiment.json").write_text("{")
    assert [experiment.path for experiment in list_experiments(tmp_path)] == [broken.path, whole.path]


def test_the_recorded_command_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef")
    experiment = create_experiment(
        tmp_path, make_spec(), source_text="", source_suffix=".yaml", command=["operant", "--key", "0123456789abcdef"]
    )
    assert experiment.document["command"] == ["operant", "--key", "<redacted>"]
