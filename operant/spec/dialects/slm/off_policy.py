"""How algorithms learn off policy: rounds of gradient steps, replay, targets, temperature."""

from __future__ import annotations

import math

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.slm.learning import NATIVE, SOFT, gradient_steps
from operant.spec.dialects.slm.sizes import sizes_of


def rounds(section: Section, key: str) -> None:
    """Gradient steps, and frames between them: SLM-Lab trains at most once per step of all environments."""
    sizes = sizes_of(section.conversion)
    absent = sizes.num_envs if section.conversion.kind in SOFT else 1
    steps, frequency = gradient_steps(section, absent), section.whole(key, 1)
    section.set("training_iter", f"{NATIVE}.training_iter", steps * sizes.workers)
    taken = max(frequency, sizes.num_envs) * sizes.workers
    section.set(key, f"{NATIVE}.training_frequency", taken)
    if frequency < sizes.num_envs:
        why = f"becomes {taken} frames, one step of all environments: SLM-Lab trains no more often either"
        section.remark(key, why)


FIRST_STEP = 1000  # SoftActorCritic's default, if that many frames hold a batch


def training_start(section: Section, key: str) -> None:
    """The frame of the first gradient step: not before the replay holds a batch."""
    conversion, sizes = section.conversion, sizes_of(section.conversion)
    size = conversion.their("agent.memory.batch_size")
    batch = int(size) if is_number(size) and 1 <= size < 10**12 else 1
    first = section.whole(key, max(FIRST_STEP, batch) if conversion.kind in SOFT else batch)
    section.set(key, f"{NATIVE}.training_start", max(first, batch) * sizes.workers)
    if first < batch:
        section.remark(key, f"raised to {batch}, the first frame that holds a batch")


NO_BIAS = "SLM-Lab leaves its bias uncorrected, which is beta 0; 0.4 and above corrects it"
MEMORIES = {"Replay": "replay", "PrioritizedReplay": "prioritised", "AtariReplay": "replay"}


def replay(section: Section, key: str) -> None:
    """The replay, by priorities or not."""
    name = section.only(key, MEMORIES)
    section.set(key, "agent.memory.name", name or "replay")
    if name != "prioritised":
        section.drop(dict.fromkeys(("alpha", "epsilon"), "left out: only PrioritizedReplay reads it"))
        return
    section.copy("alpha", "agent.memory.alpha")
    section.copy("epsilon", "agent.memory.epsilon")
    section.set(key, "agent.memory.beta", 0.0, NO_BIAS)


WHOLE = "past steps enter the replay once their episode is over, when their return is known"


def imitated(section: Section, key: str) -> None:
    """The replay of SIL and PPOSIL."""
    replay(section, key)
    section.remark(key, WHOLE)


def target(net: Section, key: str) -> None:
    """When the target net of DQN follows: copied every so many frames, or blended at every step."""
    kind = net.only(key, ("replace", "polyak"), "has no counterpart", default="replace")
    if kind != "polyak":
        net.copy("update_frequency", f"{NATIVE}.target_update", default=1)
        net.drop({"polyak_coef": "left out: update_type is replace"})
        return
    net.drop({"update_frequency": "left out: SLM-Lab's polyak blends at every step"})
    frequency, sizes = net.conversion.their("agent.algorithm.training_frequency"), sizes_of(net.conversion)
    steps = int(frequency) // sizes.num_envs if is_number(frequency) and abs(frequency) < 10**12 else 1
    _blend(net, max(1, steps), f"blends at each of {steps} steps between two rounds")


def soft_target(net: Section, key: str) -> None:
    """The targets of SAC follow at every step of the policy."""
    kind = net.only(key, ("polyak",), "has no counterpart: target critics blend by polyak", default="replace")
    if kind is None:
        net.drop(dict.fromkeys(("polyak_coef", "update_frequency"), "left out with its update_type"))
        return
    net.drop({"update_frequency": "left out: SLM-Lab's polyak blends at every step"})
    delay = net.conversion.their("agent.algorithm.policy_delay")
    every = int(delay) if is_number(delay) and 1 <= delay < 10_000 else 1
    _blend(net, 1 / every, f"blends once in {every} gradient steps, with the policy; here at each of them")


def _blend(net: Section, times: float, how: str) -> None:
    """A share of the net, taken so many times where ours takes it once."""
    share = net.get("polyak_coef", 0.0)
    if times == 1 or not is_number(share) or not 0 <= share <= 1:
        net.set("polyak_coef", f"{NATIVE}.polyak", share)
        return
    taken = float(f"{1 - (1 - share) ** times:.6g}")
    net.set("polyak_coef", f"{NATIVE}.polyak", taken)
    if taken != share:
        net.remark("polyak_coef", f"becomes {taken:g}: SLM-Lab {how}")


THEIR_SHARE, OUR_SHARE = 0.6, 0.98  # of log n, the target entropy of discrete actions
PDTYPES = {
    None: None, "default": None, "Normal": False, "MultivariateNormal": False, "Categorical": True,
    "GumbelSoftmax": True,
}  # fmt: skip
LIMITS = {"log_alpha_min": ("temperature_min", -5.0), "log_alpha_max": ("temperature_max", 2.0)}
LARGEST_LOG = 13  # of a temperature that may be set here


def discrete_or_not(section: Section, key: str) -> None:
    """Discrete actions have another target entropy, and the mean of both critics."""
    found = section.only(key, PDTYPES, "has no counterpart: Categorical or Normal")
    if not (found if found is not None else sizes_of(section.conversion).discrete):
        return
    said = "with discrete actions SLM-Lab takes the mean of both critics"
    if section.get("fixed_alpha") is None:
        section.set(key, f"{NATIVE}.discrete_entropy", THEIR_SHARE)
        said += f", and {THEIR_SHARE} log n as the target entropy; ours is {OUR_SHARE} log n"
    section.set(key, f"{NATIVE}.critic_reduction", "mean", said)


def fixed_temperature(section: Section, key: str) -> None:
    """A temperature that is not learnt."""
    if section.get(key) is not None:
        section.set(key, f"{NATIVE}.learn_temperature", False)
        section.copy(key, f"{NATIVE}.temperature")


def temperature_limit(section: Section, key: str) -> None:
    """The logarithm of the temperature stays between two numbers."""
    setting, usual = LIMITS[key]
    limit = section.get(key, usual)
    if section.get("fixed_alpha") is not None:
        if key in section.data:
            section.remark(key, "left out: the temperature is fixed")
    elif not is_number(limit) or abs(limit) > LARGEST_LOG:
        section.refuse(key, "is not the logarithm of a temperature")
    else:
        section.set(key, f"{NATIVE}.{setting}", float(f"{math.exp(limit):.6g}"))
