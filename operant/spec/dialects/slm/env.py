"""The `env` section: the problem and its budget."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Section, is_number

DEFAULT_CLIP = 10.0
PLAYGROUND = {
    "device": "left out: only environments of MuJoCo Playground read it",
    "reward_scale": "left out: only environments of MuJoCo Playground read it",
}
ATARI, ATARI_REWARD = "ALE/", 1.0  # SLM-Lab limits the rewards of all games to this
OLD_GAME = re.compile(r"(\w+)NoFrameskip-v[04]")
DISCRETE = ("CartPole", "Acrobot", "MountainCar-", "LunarLander-", "ALE/")


@dataclass(frozen=True)
class Budget:
    """What other sections need to know of the env: its size, the form of its file, and whether its actions are few.

    `discrete` is a guess by name, for a default that differs with the kind of action.
    """

    num_envs: int
    max_frame: int
    older: bool = False
    discrete: bool = False


def env(section: Section, older: bool) -> Budget:
    """Take over the env; in the newer form a key that SLM-Lab does not know is for the environment itself."""
    conversion = section.conversion
    name = section.need("name")
    _name(section, str(name))
    discrete = str(name).startswith(DISCRETE) and not section.data.get("continuous")
    budget = Budget(section.whole("num_envs", 1), section.whole("max_frame", 0), older, discrete)
    section.need("max_frame")
    conversion.set("env.num_envs", budget.num_envs, section.at("num_envs"))
    conversion.set("env.max_frame", budget.max_frame, section.at("max_frame"))
    section.copy("max_t", "env.max_t")
    if section.get("max_t") is not None:
        conversion.remark(section.at("max_t"), "ends episodes here; SLM-Lab 5 stores it and never does")
    _normalisation(section, ATARI_REWARD if str(name).startswith(ATARI) else None)
    if older:
        _older_keys(section, str(name))
    else:
        section.drop(PLAYGROUND)
        for key in section.unread():
            section.copy(key, f"env.kwargs.{key}")
    section.close()
    return budget


def _name(section: Section, name: str) -> None:
    """The environment's id; Atari games have had another one in the older form."""
    conversion, at = section.conversion, section.at("name")
    game = OLD_GAME.fullmatch(name)
    if name.startswith("playground/"):
        conversion.refuse(at, "is an environment of MuJoCo Playground, which has no counterpart")
    if game is None:
        section.copy("name", "env.name")
        return
    conversion.set("env.name", f"{ATARI}{game[1]}-v5", at)
    conversion.set("env.kwargs.repeat_action_probability", 0.0, at)
    conversion.set("env.kwargs.life_loss_info", True, at)
    conversion.set("env.clip_reward", ATARI_REWARD, at)
    conversion.remark(
        at, f"becomes {ATARI}{game[1]}-v5 without sticky actions; a lost life ends an episode to learn from"
    )


def _older_keys(section: Section, name: str) -> None:
    """What version 4 said of frames and rewards, which today's Atari does as it did."""
    is_game = OLD_GAME.fullmatch(name) is not None
    usual = {"frame_op": "concat", "frame_op_len": 4, "image_downsize": [84, 84], "reward_scale": "sign"}
    for key, value in usual.items():
        if is_game and section.data.get(key) == value:
            section.drop({key: "left out: it is so in every Atari game here"})
        elif section.get(key) is not None:
            section.conversion.lose(section.at(key), "has no counterpart")


def _normalisation(section: Section, usual_limit: float | None) -> None:
    conversion, observations, rewards = (
        section.conversion,
        section.get("normalize_obs"),
        section.get("normalize_reward"),
    )
    section.copy("normalize_obs", "env.normalize_obs")
    section.copy("normalize_reward", "env.normalize_reward")
    if section.get("clip_obs") is not None and not observations:
        conversion.lose(section.at("clip_obs"), "without normalize_obs has no counterpart")
    else:
        section.copy("clip_obs", "env.clip_obs")
    clip = section.get("clip_reward", DEFAULT_CLIP if rewards else usual_limit)
    if clip is not None:
        limit = _symmetric(clip)
        if limit is None:
            conversion.lose(section.at("clip_reward"), "has no counterpart: rewards are limited alike on both sides")
        else:
            conversion.set("env.clip_reward", limit, section.at("clip_reward"))


def _symmetric(clip: Any) -> Any:
    """The one number of `[-c, c]`; anything but a pair as it is."""
    if not isinstance(clip, list):
        return clip
    numbers = [each for each in clip if is_number(each)]
    return numbers[1] if len(numbers) == len(clip) == 2 and numbers[0] == -numbers[1] else None
