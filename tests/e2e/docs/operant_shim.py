"""The `operant` of the documentation's test: the real command line, with less to do.

It adds settings that shorten a training and options that let nobody wait for an answer. Nothing that a page says is
changed: what is added stands behind the page's own words, and only where they leave it open.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from operant.cli.app import main
from operant.errors import OperantError
from operant.spec.load import load

ELSEWHERE = ("slurm", "ray", "dstack", "sagemaker")


def shortened(words: list[str]) -> list[str]:
    """The words of the command line with what makes them short."""
    command = words[0] if words else ""
    if command == "train" or (command in ("launch", "search") and "--print-iam" not in words and words[1] != "best"):
        words = words + _settings(words)
    if command == "search" and words[1] != "best" and "--trials" not in words and "/" not in words[1]:
        words = [*words, "--trials", "2"]
    if command == "launch":
        away = any(place in words for place in ELSEWHERE) and "--local" not in words
        words = [*words, "--dry-run" if away else "--yes"] if "--dry-run" not in words else words
    if command == "eval" and not {"--episodes", "--limit"} & set(words):
        words = [*words, "--limit" if "--tasks" in words else "--episodes", "2"]
    if command == "serve" and "--port" not in words:
        words = [*words, "--port", os.environ["DOCS_PORT"]]
    if command == "app":
        words = [*words, *(option for option in ("--no-browser",) if option not in words)]
        words += [] if "--port" in words else ["--port", "0"]
    return words


def _settings(words: list[str]) -> list[str]:
    said = [words[at + 1] for at, word in enumerate(words) if word == "-s"]
    try:
        name = words[2] if len(words) > 2 and not words[2].startswith("-") else None
        spec = load(words[1], name, said).spec
    except OperantError:
        return []  # the command itself says what is wrong
    few = {"env.max_frame": _frames(spec), "meta.final_episodes": 2, "meta.eval_episodes": 1}
    if "--sessions" not in words:
        few["meta.max_session"] = 1
    if spec.agent.model and spec.agent.model.source != "tiny":
        few |= {"agent.model.source": "tiny", "agent.model.device": "cpu"}
    return [word for key, value in few.items() for word in ("-s", f"{key}={value}")]


def _frames(spec: Any) -> int:
    """Enough for two updates, or for some after the first random frames."""
    algorithm = spec.agent.algorithm
    horizon = getattr(algorithm, "time_horizon", None)
    if horizon:
        return 2 * horizon * spec.env.num_envs
    if spec.agent.model:
        return 2 * algorithm.batch_size
    return getattr(algorithm, "training_start", 1000) + 500


if __name__ == "__main__":
    sys.argv[1:] = shortened(sys.argv[1:])
    main()
