"""Jobs in the background of this machine, the job log, and what is refused before anything is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from operant.cli.app import run
from operant.launch.jobs.job import LaunchError
from operant.launch.jobs.record import JOBS_FILE, add_job, find_job, jobs

SMALL = ["-s", "env.max_frame=1024", "-s", "meta.final_episodes=2", "--sessions", "1"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_job_in_the_background_trains_to_the_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", *SMALL, "--out", "job", "-y", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["place"] == "local"
    assert run(["jobs", "follow", "1"]) == 0
    assert "job 1 done at" in capsys.readouterr().out
    assert run(["jobs", "--json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert (job["name"], job["state"], job["run"]) == ("ppo-cartpole", "done", str(here / "job"))


def test_a_dry_run_writes_the_files_and_submits_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", "--on", "slurm", "--dry-run", "--out", "job", "-n", "mine"]) == 0
    told = capsys.readouterr().out
    assert "4 tasks" in told
    assert "not submitted" in told
    assert "#SBATCH --job-name=mine" in (here / "job" / "launch" / "job.sbatch").read_text()
    assert not (here / "runs" / JOBS_FILE).exists()


def test_nobody_to_ask_submits_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", "--out", "job"]) == 4
    assert "--yes submits" in capsys.readouterr().err
    assert not list(jobs(here / "runs"))


def test_a_rented_machine_needs_a_store(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", "--on", "dstack", "--dry-run"]) != 0
    assert "meta.sync" in capsys.readouterr().err
    assert not list(here.iterdir()), "no run directory was made"


def test_a_place_that_does_not_exist(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", "--on", "slurmm"]) == 2
    assert "slurm" in capsys.readouterr().err


def test_jobs_are_found_by_id_by_name_and_by_what_their_place_calls_them(tmp_path: Path) -> None:
    for ident in ("70", "71"):
        add_job(tmp_path, "slurm", ident, "mine", tmp_path, {})
    with (tmp_path / JOBS_FILE).open("a") as log:
        log.write('{"half a li')
    assert [job.id for job in jobs(tmp_path)] == ["1", "2"]
    assert [find_job(tmp_path, name).id for name in ("1", "70", "mine")] == ["1", "1", "2"]
    with pytest.raises(LaunchError, match="no job is called 'other'"):
        find_job(tmp_path, "other")


SEARCHED = ["-s", "env.max_frame=2048", "-s", "meta.search_scheduler=null", "-s", "meta.final_episodes=2"]


def test_a_search_is_sent_as_so_many_workers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    asked = ["--on", "slurm", "--search", "3", "-s", "meta.launch.cpus=4", "-s", "meta.search_resources.cpu=2"]
    assert run(["launch", "ppo_cartpole_search", *asked, "--dry-run", "--out", "job"]) == 0
    assert "3 tasks, each 4 CPUs" in capsys.readouterr().out
    script = (here / "job" / "launch" / "job.sbatch").read_text()
    assert script.count(f"operant search {here / 'job'} --plain") == 3
    assert json.loads((here / "job" / "search.json").read_text())["workers"] == 6, "two trials fit into each task"


def test_a_spec_without_a_search_block_cannot_be_searched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "ppo_cartpole", "--search", "2", "-y"]) == 2
    assert "has no search block" in capsys.readouterr().err
    assert not list(here.iterdir()), "no folder was made"


@pytest.mark.slow
def test_a_search_in_the_background_goes_to_its_end(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("optuna")
    assert run(["launch", "ppo_cartpole_search", "--search", "1", *SEARCHED, "-s", "meta.max_trial=2", "-y"]) == 0
    assert run(["jobs", "follow", "1"]) == 0
    assert "job 1 done at 4,096 frames" in capsys.readouterr().out
