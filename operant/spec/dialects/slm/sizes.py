"""What many settings are counted by: environments, frames, sessions; and the sections `env` and `meta`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Conversion, Section, is_number

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
    shares = conversion.their("meta.distributed") in ("shared", "synced")
    return Sizes(
        num_envs=_count(conversion.their("env.num_envs")),
        max_frame=_count(conversion.their("env.max_frame")),
        workers=_count(conversion.their("meta.max_session")) if shares else 1,
        older="body" in conversion.theirs.data,
        discrete=str(conversion.their("env.name")).startswith(DISCRETE) and not conversion.their("env.continuous"),
    )


def _count(value: Any) -> int:
    return int(value) if is_number(value) and 1 <= value < 10**15 else 1


def environment(section: Section, key: str) -> None:
    """The environment's id; Atari games have had another one in the older form."""
    game = _old_game(section)
    if str(section.get(key)).startswith(PLAYGROUND):
        _playground(section, key)
    if game is None:
        return
    sticky = 0.0 if game["steady"] else STICKY
    how = f"with sticky actions of {STICKY}" if sticky else "without sticky actions"
    name = f"{ATARI}{game[1]}-v5"
    section.set(key, "env.name", name, f"becomes {name} {how}; a lost life ends an episode to learn from")
    section.set(key, "env.kwargs.repeat_action_probability", sticky)
    section.set(key, "env.kwargs.life_loss_info", True)
    if section.conversion.kind != "Random":
        section.set(key, "env.clip_reward", ATARI_REWARD)


def _old_game(section: Section) -> re.Match[str] | None:
    """An Atari game by an id of older versions; one without NoFrameskip is told by the convolutions of its net."""
    found = OLD_GAME.fullmatch(str(section.get("name")))
    net = str(section.conversion.their("agent.net.type"))
    return found if found and (found["steady"] or net.endswith("ConvNet")) else None


ON_MJX = (
    "is simulated by MJX in JAX, by SLM-Lab with Warp; episodes end after {steps} steps, as there, and the next begins"
    " anew, where SLM-Lab's goes back to the environment's first state; actions are limited to [-1, 1]"
)
CLIPPED_OBS = "normalised observations are limited to 10, which SLM-Lab does on the CPU but not on a GPU"


def _playground(section: Section, key: str) -> None:
    """What SLM-Lab fixes for every environment of MuJoCo Playground."""
    repeat = REPEATED.get(section.get(key), 1)
    steps = PLAYGROUND_STEPS // repeat
    section.set(key, "env.max_t", steps, ON_MJX.format(steps=steps))
    if repeat > 1:
        section.set(key, "env.kwargs.action_repeat", repeat)
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


FREQUENCY, TIMES = 10_000, 20


def distributed(section: Section, key: str) -> None:
    """Workers that train one set of weights, each at its own pace, become environments that play in step."""
    mode, sizes = section.get(key, False), sizes_of(section.conversion)
    if mode in ("shared", "synced"):
        why = (
            f"trains in step here: {sizes.workers} workers x num_envs {sizes.num_envs} play as {sizes.all_envs}"
            " environments of one run, whose updates are of all of them together"
        )
        section.remark(key, why)
    elif mode is not False:
        section.lose(key, "has no counterpart: there are shared and synced")


def count(section: Section, key: str) -> None:
    """Sessions are runs, unless they share weights."""
    sizes = sizes_of(section.conversion)
    if sizes.workers > 1:
        section.set(key, "meta.max_session", 1, f"{sizes.workers} workers become one run of {sizes.all_envs} envs")
        section.get(key)
    else:
        section.copy(key, "meta.max_session")


def evaluation(section: Section, key: str) -> None:
    """SLM-Lab evaluates nothing unless asked; here a long run is evaluated and saved a fixed number of times."""
    conversion = section.conversion
    if section.get(key):
        section.copy("eval_frequency", "meta.eval_frequency")
        section.remark(key, "every evaluation plays `meta.eval_episodes` on seeds of its own")
        return
    every = max(FREQUENCY, sizes_of(conversion).max_frame // TIMES)
    if section.get("eval_frequency") is not None:
        why = f"left out: SLM-Lab reads it only with rigorous_eval; evaluated every {every:,} frames here"
        section.remark("eval_frequency", why)
    if every > FREQUENCY:
        section.set("eval_frequency", "meta.eval_frequency", every)
        conversion.set("meta.save_frequency", every, section.path)


SEARCH_ONLY = "left out: it governs a search, and there is no search block"
SCHEDULER_LOST = "has no counterpart: rungs follow from grace_period and reduction_factor"


def trials(section: Section, key: str) -> None:
    """How many trials there are, what each may use and when they are stopped; nothing without a search."""
    if not isinstance(section.conversion.theirs.data.get("search"), dict):
        section.drop(dict.fromkeys((key, "search_resources", "search_scheduler"), SEARCH_ONLY))
        return
    section.copy(key, "meta.max_trial")
    resources = section.below("search_resources")
    if resources.number("cpu") is not None and abs(resources.get("cpu")) < 10**9:
        resources.set("cpu", "meta.search_resources.cpu", math.ceil(resources.get("cpu")))
    resources.copy("gpu", "meta.search_resources.gpu")
    if section.below("search_scheduler").data:
        _scheduler(section.below("search_scheduler"))


def _scheduler(scheduler: Section) -> None:
    conversion = scheduler.conversion
    scheduler.copy("grace_period", "meta.search_scheduler.grace_period")
    scheduler.copy("reduction_factor", "meta.search_scheduler.reduction_factor")
    for key in scheduler.unread():
        scheduler.lose(key, SCHEDULER_LOST)
        scheduler.get(key)
    grace = scheduler.get("grace_period")
    asked = conversion.native.data["meta"].get("eval_frequency", FREQUENCY)
    if isinstance(grace, int | float) and isinstance(asked, int | float) and grace < asked:
        # A trial is judged by an evaluation, of which there must be one before the first rung.
        scheduler.set("grace_period", "meta.eval_frequency", grace)
