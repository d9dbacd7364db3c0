"""What many settings are counted by: environments, frames, sessions that share weights; and the env section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Conversion, Section, is_number
from operant.spec.reading.document import KeyPath, lookup

DEFAULT_CLIP = 10.0
ATARI, ATARI_REWARD = "ALE/", 1.0  # SLM-Lab limits the rewards of all games to this
PLAYGROUND, PLAYGROUND_STEPS = "playground/", 1000  # SLM-Lab ends all episodes of Playground after so many
REPEATED = {"playground/PendulumSwingup": 4}  # actions that SLM-Lab plays several times
OLD_GAME = re.compile(r"(\w+?)(?P<steady>NoFrameskip)?-v[04]")
STICKY = 0.25  # the probability with which games of the older ids without NoFrameskip repeat an action
DISCRETE = ("CartPole", "Acrobot", "MountainCar-", "LunarLander-", "ALE/")


@dataclass(frozen=True)
class Sizes:
    """The counts of a spec; `workers` are the sessions of asynchronous training, which share one set of weights.

    `older` is the form of version 4; `discrete` is a guess by name, for a default that differs with the kind of action.
    """

    num_envs: int
    max_frame: int
    workers: int
    older: bool
    discrete: bool

    @property
    def all_envs(self) -> int:
        """The environments of all workers."""
        return self.num_envs * self.workers


def sizes_of(conversion: Conversion) -> Sizes:
    """The counts that a file gives; anything that is no count is taken for 1, and refused where it stands."""
    data = conversion.theirs.data
    name = str(lookup(data, ("env", "name")))
    shares = lookup(data, ("meta", "distributed")) in ("shared", "synced")
    return Sizes(
        num_envs=_count(lookup(data, ("env", "num_envs"))),
        max_frame=_count(lookup(data, ("env", "max_frame"))),
        workers=_count(lookup(data, ("meta", "max_session"))) if shares else 1,
        older="body" in data,
        discrete=name.startswith(DISCRETE) and not lookup(data, ("env", "continuous")),
    )


def _count(value: Any) -> int:
    return int(value) if is_number(value) and 1 <= value < 10**15 else 1


def environment(section: Section, key: str) -> None:
    """The environment's id; Atari games have had another one in the older form."""
    conversion, at, name = section.conversion, section.at(key), str(section.get(key))
    game = _old_game(section)
    if name.startswith(PLAYGROUND):
        _playground(section, name, at)
    if game is None:
        return
    conversion.set("env.name", f"{ATARI}{game[1]}-v5", at)
    sticky = 0.0 if game["steady"] else STICKY
    conversion.set("env.kwargs.repeat_action_probability", sticky, at)
    conversion.set("env.kwargs.life_loss_info", True, at)
    if conversion.kind != "Random":
        conversion.set("env.clip_reward", ATARI_REWARD, at)
    how = f"with sticky actions of {STICKY}" if sticky else "without sticky actions"
    conversion.remark(at, f"becomes {ATARI}{game[1]}-v5 {how}; a lost life ends an episode to learn from")


def _old_game(section: Section) -> re.Match[str] | None:
    """An Atari game by an id of older versions; one without NoFrameskip is told by the convolutions of its net."""
    found = OLD_GAME.fullmatch(str(section.get("name")))
    net = lookup(section.conversion.theirs.data, ("agent", "net", "type"))
    return found if found and (found["steady"] or str(net).endswith("ConvNet")) else None


ON_MJX = (
    "is simulated by MJX in JAX, by SLM-Lab with Warp; episodes end after {steps} steps, as there, and the next begins"
    " anew, where SLM-Lab's goes back to the environment's first state; actions are limited to [-1, 1]"
)
CLIPPED_OBS = "normalised observations are limited to 10, which SLM-Lab does on the CPU but not on a GPU"


def _playground(section: Section, name: str, at: KeyPath) -> None:
    """What SLM-Lab fixes for every environment of MuJoCo Playground."""
    repeat = REPEATED.get(name, 1)
    steps = PLAYGROUND_STEPS // repeat
    section.conversion.set("env.max_t", steps, at)
    if repeat > 1:
        section.conversion.set("env.kwargs.action_repeat", repeat, at)
    section.conversion.remark(at, ON_MJX.format(steps=steps))
    if section.get("normalize_obs") and section.get("clip_obs") is None:
        section.remark("normalize_obs", CLIPPED_OBS)


def environments(section: Section, key: str) -> None:
    """As many as all workers have together."""
    sizes, count = sizes_of(section.conversion), section.whole(key, 1)
    section.set(key, "env.num_envs", count * sizes.workers)


def frames(section: Section, key: str) -> None:
    """The budget, which may be written as 1e6."""
    if section.get(key) is not None:
        section.set(key, "env.max_frame", section.whole(key, 0))


def clip_observations(section: Section, key: str) -> None:
    """Only where observations are normalised."""
    if section.get(key) is not None and not section.get("normalize_obs"):
        section.lose(key, "without normalize_obs has no counterpart")
    else:
        section.copy(key, "env.clip_obs")


def clip_rewards(section: Section, key: str) -> None:
    """A limit on both sides; there is one by default where rewards are normalised, and in every Atari game."""
    usual = ATARI_REWARD if str(section.get("name")).startswith(ATARI) else None
    clip = section.get(key, DEFAULT_CLIP if section.get("normalize_reward") else usual)
    limit = _symmetric(clip)
    if clip is not None and limit is None:
        section.lose(key, "has no counterpart: rewards are limited alike on both sides")
    elif clip is not None:
        section.set(key, "env.clip_reward", limit)


def _symmetric(clip: Any) -> Any:
    """The one number of `[-c, c]`; anything but a pair as it is."""
    if not isinstance(clip, list):
        return clip
    numbers = [each for each in clip if is_number(each)]
    return numbers[1] if len(numbers) == len(clip) == 2 and numbers[0] == -numbers[1] else None


USUAL = {"frame_op": "concat", "frame_op_len": 4, "image_downsize": [84, 84], "reward_scale": "sign"}


def frame_option(section: Section, key: str) -> None:
    """What version 4 said of frames and rewards, which today's Atari does as it did."""
    is_game = _old_game(section) is not None
    if key == "reward_scale" and str(section.get("name")).startswith(PLAYGROUND):
        section.copy(key, "env.reward_scale")
    elif not sizes_of(section.conversion).older:
        section.drop({key: "left out: only environments of MuJoCo Playground read it"} if key == "reward_scale" else {})
    elif is_game and section.data.get(key) == USUAL[key]:
        section.drop({key: "left out: it is so in every Atari game here"})
    elif section.get(key) is not None:
        section.lose(key, "has no counterpart")


def argument(section: Section, key: str) -> None:
    """Any other key is for the environment itself; SLM-Lab gives none to those of MuJoCo Playground."""
    if str(section.get("name")).startswith(PLAYGROUND):
        section.drop({key: "left out: SLM-Lab gives no arguments to environments of MuJoCo Playground"})
        return
    section.copy(key, f"env.kwargs.{key}")


def several_bodies(section: Section, key: str) -> None:
    """Version 4 could have several agents in several environments."""
    if section.get(key, {}) not in ({}, {"product": "outer", "num": 1}):
        section.refuse(key, "has no counterpart: one agent learns in one environment")
    elif section.get(key):
        section.remark(key, "left out: one agent learns in one environment")
