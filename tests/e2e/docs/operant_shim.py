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

LARGE = 10_000
ELSEWHERE = ("slurm", "ray", "dstack", "sagemaker")


def shortened(words: list[str]) -> list[str]:
    """The words of the command line with what makes them short."""
    command = words[0] if words else ""
    if command == "check" and "--contract" not in words:
        words = words + _as_words(_model(_spec(words)))
    if command == "train" or (command in ("launch", "search") and "--print-iam" not in words and words[1] != "best"):
        words = words + _settings(words)
    if command == "search" and words[1] != "best" and "--trials" not in words and "/" not in words[1]:
        words = [*words, "--trials", "2"]
    if command == "launch":
        away = any(place in words for place in ELSEWHERE) and "--local" not in words
        words = [*words, "--dry-run" if away else "--yes"] if "--dry-run" not in words else words
    if words[:2] == ["jobs", "resume"]:
        words = [*words, "--yes"]
    if command == "bench" and "--list" not in words:
        few = {"--frames": "2048", "--seeds": "1", "-s": "meta.final_episodes=2"}
        words = [*words, *(word for option, value in few.items() if option not in words for word in (option, value))]
    if command == "resume" and "-s" in words:
        words = [*words, "--until", "4096"]
    if command == "eval" and not {"--episodes", "--limit"} & set(words):
        words = [*words, "--limit" if "--tasks" in words else "--episodes", "2"]
    if command == "eval" and "gsm8k" in words:
        words = [*words, "-a", "gsm8k.max_tokens=16"]
    if command == "serve" and "--port" not in words:
        words = [*words, "--port", os.environ["DOCS_PORT"]]
    if command == "app":
        words = [*words, *(option for option in ("--no-browser",) if option not in words)]
        words += [] if "--port" in words else ["--port", "0"]
    return words


def _settings(words: list[str]) -> list[str]:
    spec = _spec(words)
    if spec is None:
        return []
    few = {"env.max_frame": _frames(spec), "meta.final_episodes": 2, "meta.eval_episodes": 1}
    if "--sessions" not in words:
        few["meta.max_session"] = 1
    return _as_words(few | _model(spec))


def _spec(words: list[str]) -> Any:
    """The spec that the words name, or None: then the command itself says what is wrong."""
    said = [words[at + 1] for at, word in enumerate(words) if word == "-s"]
    try:
        return load(words[1], words[2] if len(words) > 2 and not words[2].startswith("-") else None, said).spec
    except OperantError:
        return None


def _model(spec: Any) -> dict[str, Any]:
    """A model that is here, in place of a pretrained one."""
    if spec is None or not spec.agent.model:
        return {}
    if spec.agent.model.source == "tiny" and "tiny" in spec.name:
        return {}
    # A dialogue does not fit into its usual context.
    small = {"agent.model.source": "tiny", "agent.model.tiny.context": 4096}
    warm_up = {"agent.algorithm.warmup.updates": 2} if getattr(spec.agent.algorithm, "warmup", None) else {}
    turns = {"env.text.dialogue.turns": 2} if "dialogue" in spec.env.text.model_fields_set else {}
    return small | warm_up | turns | {"meta.device": "cpu", "env.text.max_tokens": 16}


def _as_words(settings: dict[str, Any]) -> list[str]:
    return [word for key, value in settings.items() for word in ("-s", f"{key}={value}")]


def _frames(spec: Any) -> int:
    """Enough for two updates, or one large one, or for some after the first random frames."""
    algorithm = spec.agent.algorithm
    horizon = getattr(algorithm, "time_horizon", None)
    if horizon:
        update = horizon * spec.env.num_envs
        return 2 * update if update < LARGE else update
    if spec.agent.model:
        return 2 * algorithm.batch_size
    return getattr(algorithm, "training_start", 1000) + 500


if __name__ == "__main__":
    sys.argv[1:] = shortened(sys.argv[1:])
    main()
