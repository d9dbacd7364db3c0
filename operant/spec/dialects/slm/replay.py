"""What SLM-Lab's off-policy algorithms have in common: a replay, and rounds of gradient steps."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.env import Budget

NATIVE = "agent.algorithm"
MEMORIES = {"Replay": "replay", "PrioritizedReplay": "prioritised", "AtariReplay": "replay"}
NO_BIAS = "SLM-Lab leaves its bias uncorrected, which is beta 0; 0.4 and above corrects it"


def replay(memory: Section) -> int:
    """Take over the replay; its batch size."""
    replay_settings(memory, "name")
    size = memory.whole("batch_size", 1)
    memory.close()
    return size


def replay_settings(memory: Section, kind: str) -> None:
    """Take over the replay whose name is under the key `kind`."""
    ledger = memory.ledger
    name = memory.only(kind, MEMORIES, f"has no counterpart; there are {', '.join(MEMORIES)}")
    ledger.set("agent.memory.name", name or "replay", memory.at(kind))
    for key in ("batch_size", "max_size"):
        memory.need(key)
        memory.copy(key, f"agent.memory.{key}")
    memory.copy("use_cer", "agent.memory.combined")
    if name == "prioritised":
        memory.copy("alpha", "agent.memory.alpha")
        memory.copy("epsilon", "agent.memory.epsilon")
        ledger.set("agent.memory.beta", 0.0, memory.at(kind))
        ledger.remark(memory.at(kind), NO_BIAS)
    else:
        memory.drop(dict.fromkeys(("alpha", "epsilon"), "left out: only PrioritizedReplay reads it"))


def rounds(settings: Section, budget: Budget, iterations: int) -> None:
    """Gradient steps per round, and rounds: SLM-Lab trains at most once per step of all environments.

    `iterations` is what the absence of `training_iter` means.
    """
    ledger = settings.ledger
    ledger.set(f"{NATIVE}.training_iter", gradient_steps(settings, iterations), settings.at("training_iter"))
    frequency = settings.whole("training_frequency", 1)
    ledger.set(f"{NATIVE}.training_frequency", max(frequency, budget.num_envs), settings.at("training_frequency"))
    if frequency < budget.num_envs:
        why = f"becomes {budget.num_envs} frames, one step of all environments: SLM-Lab trains no more often either"
        ledger.remark(settings.at("training_frequency"), why)


def gradient_steps(settings: Section, iterations: int) -> int:
    """How many a round has; `iterations` is what the absence of `training_iter` means."""
    batches, repeats = settings.whole("training_iter", iterations), settings.whole("training_batch_iter", 1)
    if repeats > 1:
        why = f"{batches} x {repeats} gradient steps become {batches * repeats}, each on a batch of its own"
        settings.ledger.remark(settings.at("training_batch_iter"), why)
    return batches * repeats


def start(settings: Section, batch_size: int, default: int) -> None:
    """The frame of the first gradient step: not before the replay holds a batch."""
    first = settings.whole("training_start_step", default)
    settings.ledger.set(f"{NATIVE}.training_start", max(first, batch_size), settings.at("training_start_step"))
    if first < batch_size:
        why = f"raised to {batch_size}, the first frame that holds a batch"
        settings.ledger.remark(settings.at("training_start_step"), why)
