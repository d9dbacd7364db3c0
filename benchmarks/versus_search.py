"""A search beside Ray Tune's ASHA and Optuna's successive halving: the same sixteen points, rungs and two workers.

    python -m benchmarks.versus_search --python PYTHON_WITH_RAY_TUNE_AND_SB3

Operant searches `ppo_cartpole_search` with random draws; the peers then try the points that it drew, with SB3's PPO in
place of ours. Each side is compared with its own plain training: what its trials trained, each to the frames that it
reached, in one process without a searcher. CPU-seconds are those of all processes that a side starts, imports of the
plain one taken off; what is left over is what the searcher costs. One thread for each trial.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNGS = (4_000, 16_000, 64_000)
FACTOR, WORKERS, EPISODES, SEED = 4, 2, 8, 1
MARK = "OPERANT_BENCHMARK"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
QUIET = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_V2_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
}
Report = Callable[[int, float], bool]
Point = dict[str, Any]


def cpu_seconds() -> float:
    """CPU time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def sb3_trial(point: Point, frames: int, report: Report) -> None:
    """SB3's PPO up to so many frames; `report` hears the greedy score at each rung and may say stop."""
    import torch
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.env_util import make_vec_env  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.evaluation import evaluate_policy  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=8, seed=SEED),
        n_steps=128,
        batch_size=256,
        n_epochs=point["agent.algorithm.training_epoch"],
        gamma=point["agent.algorithm.gamma"],
        clip_range=point["agent.algorithm.clip_eps"],
        learning_rate=point["agent.net.optimizer.lr"],
        seed=SEED,
        device="cpu",
    )
    test = make_vec_env("CartPole-v1", seed=SEED + 1000)
    for rung in (rung for rung in RUNGS if rung <= frames):
        model.learn(rung - model.num_timesteps, reset_num_timesteps=False)
        score, _ = evaluate_policy(model, test, n_eval_episodes=EPISODES, warn=False)
        if report(rung, float(score)):
            return


def ray_side(points: list[Point]) -> list[dict[str, float]]:
    """Ray Tune with its ASHA scheduler."""
    import ray  # pyright: ignore[reportMissingImports]
    from ray import tune  # pyright: ignore[reportMissingImports]
    from ray.tune.schedulers import ASHAScheduler  # pyright: ignore[reportMissingImports]

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR", address="local")

    def objective(config: dict[str, Any]) -> None:
        def report(frames: int, score: float) -> bool:
            tune.report({"frames": frames, "score": score})
            return False  # Tune ends the trial itself.

        sb3_trial(config["point"], RUNGS[-1], report)

    scheduler = ASHAScheduler(time_attr="frames", max_t=RUNGS[-1], grace_period=RUNGS[0], reduction_factor=FACTOR)
    chosen = tune.TuneConfig(metric="score", mode="max", max_concurrent_trials=WORKERS, scheduler=scheduler)
    tuner = tune.Tuner(
        tune.with_resources(objective, {"cpu": 1}),
        param_space={"point": tune.grid_search(points)},
        tune_config=chosen,
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0),
    )
    found = [{"frames": each.metrics["frames"], "score": each.metrics["score"]} for each in tuner.fit()]
    ray.shutdown()
    return found


def optuna_side(points: list[Point]) -> list[dict[str, float]]:
    """Optuna with its successive halving, two processes on one SQLite file."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = f"sqlite:///{tempfile.mkdtemp()}/study.db"
    study = optuna.create_study(study_name="s", storage=url, direction="maximize")
    for index in range(len(points)):
        study.enqueue_trial({"index": index})
    script = [sys.executable, __file__, "optuna_worker", url]
    workers = [subprocess.Popen(script, stdin=subprocess.PIPE, text=True) for _ in range(WORKERS)]
    for each in workers:
        assert each.stdin is not None
        each.stdin.write(json.dumps(points))
        each.stdin.close()
    assert [each.wait() for each in workers] == [0] * WORKERS
    last = [max(each.intermediate_values.items()) for each in study.trials if each.intermediate_values]
    return [{"frames": frames, "score": score} for frames, score in last]


def optuna_worker(points: list[Point], url: str) -> None:
    """One of the two: it tries the points that nobody has tried, until none is left."""
    import optuna
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=RUNGS[0], reduction_factor=FACTOR)
    study = optuna.load_study(study_name="s", storage=url, pruner=pruner)

    def objective(trial: optuna.Trial) -> float:
        index, scores = trial.suggest_int("index", 0, len(points) - 1), []

        def report(frames: int, score: float) -> bool:
            scores.append(score)
            trial.report(score, frames)
            return frames < RUNGS[-1] and trial.should_prune()

        sb3_trial(points[index], RUNGS[-1], report)
        if len(scores) < len(RUNGS):
            raise optuna.TrialPruned
        return scores[-1]

    while study.get_trials(states=(TrialState.WAITING,), deepcopy=False):
        study.optimize(objective, n_trials=1)


def sb3_plain(work: list[tuple[Point, int]]) -> float:
    """CPU-seconds of SB3 for these points, each to its frames, without a searcher."""
    sb3_trial(work[0][0], 0, lambda frames, score: False)
    begun = cpu_seconds()
    for point, frames in work:
        sb3_trial(point, frames, lambda frames, score: False)
    return cpu_seconds() - begun


def operant_plain(work: list[tuple[Point, int]]) -> float:
    """The same of our PPO, in run directories of their own."""
    from operant.engines.torch import train
    from operant.hpo.trials import make_runs, trial_spec
    from operant.spec.load import load

    base, folder, begun = load("ppo_cartpole_search").spec, Path(tempfile.mkdtemp()), 0.0
    for number, (point, frames) in enumerate([(work[0][0], 128), *work]):
        if number == 1:
            begun = cpu_seconds()  # The first, which is not counted, has loaded all that is loaded late.
        spec = trial_spec(base, point)
        assert spec is not None
        train(make_runs(folder, number, spec)[0], until=None if frames >= RUNGS[-1] else frames)
    return cpu_seconds() - begun


def measured(command: list[str], given: Any = None) -> dict[str, Any]:
    """Seconds and CPU-seconds of a command with everything that it starts, and what it printed last.

    Processes are known by a variable that they inherit. They are looked at five times a second, so the last fifth of a
    second of each may be missing.
    """
    mark, used, begun = uuid.uuid4().hex, {}, time.perf_counter()
    environment = {**os.environ, **THREADS, **QUIET, MARK: mark}
    with tempfile.TemporaryFile("w+") as source, tempfile.TemporaryFile("w+") as out:
        source.write(json.dumps(given))
        source.seek(0)
        process = subprocess.Popen(command, env=environment, stdin=source, stdout=out)
        while process.poll() is None:
            used |= _used(f"{MARK}={mark}".encode())
            time.sleep(0.2)
        out.seek(0)
        said = out.read()
    assert process.returncode == 0, said
    return {"seconds": time.perf_counter() - begun, "cpu": sum(used.values()), "said": said}


def _used(mark: bytes) -> dict[tuple[str, str], float]:
    """The CPU-seconds so far of the processes that carry the mark."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                facts = (folder / "stat").read_text().rpartition(")")[2].split()
                found[folder.name, facts[19]] = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            continue
    return found


def operant_search(folder: Path) -> dict[str, Any]:
    """Our search, by the command that a user types."""
    settings = ["meta.search_sampler=random", f"meta.seed={SEED}", f"meta.eval_episodes={EPISODES}"]
    flags = [flag for setting in settings for flag in ("-s", setting)]
    command = [sys.executable, "-m", "operant", "search", "ppo_cartpole_search", "--out", str(folder), *flags]
    found = measured([*command, "--workers", str(WORKERS), "--plain"])
    from operant.report.search_table import search_rows

    rows = search_rows(folder)
    trials = [{"frames": row.frames, "score": row.score.point, "point": row.settings} for row in rows if row.score]
    return {**found, "trials": trials}


def beside(python: str) -> dict[str, dict[str, float]]:
    """One row for each searcher."""
    table: dict[str, dict[str, float]] = {}
    ours = operant_search(Path(tempfile.mkdtemp()) / "search")
    points = [each["point"] for each in ours["trials"]]
    sides: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {"operant": (ours, ours["trials"])}
    for name in ("ray", "optuna"):
        found = measured([python, __file__, f"{name}_side"], points)
        trials = json.loads(found["said"].splitlines()[-1])
        sides[name] = found, [{**trial, "point": point} for trial, point in zip(trials, points, strict=True)]
    for name, (found, trials) in sides.items():
        work = [(each["point"], int(each["frames"])) for each in trials]
        plain = [sys.executable, __file__, "operant_plain"] if name == "operant" else [python, __file__, "sb3_plain"]
        training = float(measured(plain, work)["said"].splitlines()[-1])
        rungs = sum(frames >= rung for _, frames in work for rung in RUNGS)
        table[name] = {
            "best": max(each["score"] for each in trials),
            "frames": sum(frames for _, frames in work),
            "rung jobs": rungs,
            "seconds": found["seconds"],
            "CPU-s": found["cpu"],
            "training CPU-s": training,
            "CPU-s beside it": found["cpu"] - training,
            "of the training": (found["cpu"] - training) / training,
        }
        print(name, {key: round(value, 2) for key, value in table[name].items()}, flush=True)
    return table


SIDES = {each.__name__: each for each in (ray_side, optuna_side, optuna_worker, sb3_plain, operant_plain)}


def main() -> None:
    """One of the sides where its name is given, else all of them."""
    if sys.argv[1:] and sys.argv[1] in SIDES:
        found = SIDES[sys.argv[1]](json.load(sys.stdin), *sys.argv[2:])
        print(json.dumps(found))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="a Python with ray[tune], optuna and stable-baselines3")
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    options = parser.parse_args()
    table = beside(options.python)
    if options.out:
        options.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
