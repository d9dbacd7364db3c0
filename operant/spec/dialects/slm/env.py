"""The `env` section: the problem and its budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.slm.ledger import Section

DEFAULT_CLIP = 10.0
PLAYGROUND = {
    "device": "left out: only environments of MuJoCo Playground read it",
    "reward_scale": "left out: only environments of MuJoCo Playground read it",
}


@dataclass(frozen=True)
class Budget:
    """What other sections need to know of the env."""

    num_envs: int
    max_frame: int


def env(section: Section, older: bool) -> Budget:
    """Take over the env; in the newer form a key that SLM-Lab does not know is for the environment itself."""
    ledger = section.ledger
    name = section.need("name")
    section.copy("name", "env.name")
    if isinstance(name, str) and name.startswith("playground/"):
        ledger.refuse(section.at("name"), "is an environment of MuJoCo Playground, which has no counterpart")
    budget = Budget(section.whole("num_envs", 1), section.whole("max_frame", 0))
    section.need("max_frame")
    ledger.set("env.num_envs", budget.num_envs, section.at("num_envs"))
    ledger.set("env.max_frame", budget.max_frame, section.at("max_frame"))
    section.copy("max_t", "env.max_t")
    if section.get("max_t") is not None:
        ledger.remark(section.at("max_t"), "ends episodes here; SLM-Lab 5 stores it and never does")
    _normalisation(section)
    if not older:
        section.drop(PLAYGROUND)
        for key in section.unread():
            section.copy(key, f"env.kwargs.{key}")
    section.close()
    return budget


def _normalisation(section: Section) -> None:
    ledger, observations, rewards = section.ledger, section.get("normalize_obs"), section.get("normalize_reward")
    section.copy("normalize_obs", "env.normalize_obs")
    section.copy("normalize_reward", "env.normalize_reward")
    if section.get("clip_obs") is not None and not observations:
        ledger.lose(section.at("clip_obs"), "without normalize_obs has no counterpart")
    else:
        section.copy("clip_obs", "env.clip_obs")
    clip = section.get("clip_reward", DEFAULT_CLIP if rewards else None)
    if clip is not None:
        limit = _symmetric(clip)
        if limit is None:
            ledger.lose(section.at("clip_reward"), "has no counterpart: rewards are limited alike on both sides")
        else:
            ledger.set("env.clip_reward", limit, section.at("clip_reward"))


def _symmetric(clip: Any) -> Any:
    """The one number of `[-c, c]`; anything but a pair as it is."""
    if not isinstance(clip, list):
        return clip
    numbers = [each for each in clip if isinstance(each, int | float) and not isinstance(each, bool)]
    return numbers[1] if len(numbers) == len(clip) == 2 and numbers[0] == -numbers[1] else None
