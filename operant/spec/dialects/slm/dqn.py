"""VanillaDQN, DQN and DoubleDQN, and the replay and gradient steps that SLM-Lab's off-policy algorithms share."""

from __future__ import annotations

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.schedule import NATIVE, exploration

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
    conversion = memory.conversion
    name = memory.only(kind, MEMORIES, f"has no counterpart; there are {', '.join(MEMORIES)}")
    conversion.set("agent.memory.name", name or "replay", memory.at(kind))
    for key in ("batch_size", "max_size"):
        memory.need(key)
        memory.copy(key, f"agent.memory.{key}")
    memory.copy("use_cer", "agent.memory.combined")
    if name == "prioritised":
        memory.copy("alpha", "agent.memory.alpha")
        memory.copy("epsilon", "agent.memory.epsilon")
        conversion.set("agent.memory.beta", 0.0, memory.at(kind))
        conversion.remark(memory.at(kind), NO_BIAS)
    else:
        memory.drop(dict.fromkeys(("alpha", "epsilon"), "left out: only PrioritizedReplay reads it"))


def rounds(settings: Section, budget: Budget, iterations: int) -> None:
    """Gradient steps per round, and rounds: SLM-Lab trains at most once per step of all environments.

    `iterations` is what the absence of `training_iter` means.
    """
    conversion = settings.conversion
    conversion.set(f"{NATIVE}.training_iter", gradient_steps(settings, iterations), settings.at("training_iter"))
    frequency = settings.whole("training_frequency", 1)
    conversion.set(f"{NATIVE}.training_frequency", max(frequency, budget.num_envs), settings.at("training_frequency"))
    if frequency < budget.num_envs:
        why = f"becomes {budget.num_envs} frames, one step of all environments: SLM-Lab trains no more often either"
        conversion.remark(settings.at("training_frequency"), why)


def gradient_steps(settings: Section, iterations: int) -> int:
    """How many a round has; `iterations` is what the absence of `training_iter` means."""
    batches, repeats = settings.whole("training_iter", iterations), settings.whole("training_batch_iter", 1)
    if repeats > 1:
        why = f"{batches} x {repeats} gradient steps become {batches * repeats}, each on a batch of its own"
        settings.conversion.remark(settings.at("training_batch_iter"), why)
    return batches * repeats


def start(settings: Section, batch_size: int, default: int) -> None:
    """The frame of the first gradient step: not before the replay holds a batch."""
    first = settings.whole("training_start_step", default)
    settings.conversion.set(f"{NATIVE}.training_start", max(first, batch_size), settings.at("training_start_step"))
    if first < batch_size:
        why = f"raised to {batch_size}, the first frame that holds a batch"
        settings.conversion.remark(settings.at("training_start_step"), why)


LOSSES = {"MSELoss": "mse", "SmoothL1Loss": "huber", "HuberLoss": "huber"}
NO_CRITIC = "left out: DQN has no critic"
NET_DROPPED: dict[str, str] = {
    **dict.fromkeys(("shared", "use_same_optim", "actor_optim_spec", "critic_optim_spec"), NO_CRITIC),
    "log_std_init": "left out: DQN has no continuous actions",
}
IS_DOUBLE = "SLM-Lab's DQN selects with the online net, which is Double DQN; `double: false` is the plain one"


def dqn(agent: Section, budget: Budget) -> None:
    """Take over one of the three, its memory, net and target."""
    settings, net = agent.below("algorithm"), agent.below("net")
    name = settings.get("name")
    settings.conversion.set(f"{NATIVE}.name", "dqn", settings.at("name"))
    settings.conversion.set(f"{NATIVE}.double", name != "VanillaDQN", settings.at("name"))
    if name == "DQN":
        settings.conversion.remark(settings.at("name"), IS_DOUBLE)
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    exploration(settings)
    batch_size = replay(agent.below("memory"))
    rounds(settings, budget, iterations=1)
    start(settings, batch_size, default=batch_size)
    td_loss(net)
    if name == "VanillaDQN":
        _no_target(settings, net)
    else:
        _target(net, budget)
    settings.close()
    nets.layers(net, heads=("critic",))
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED})
    net.close()


def td_loss(net: Section) -> None:
    """The loss of temporal-difference errors: squared, or Huber's."""
    loss = net.below("loss_spec")
    found = loss.only("name", LOSSES, f"has no counterpart; there are {', '.join(LOSSES)}", default="MSELoss")
    if found is not None:
        net.conversion.set(f"{NATIVE}.loss", found, loss.at("name"))
    for key in ("beta", "delta"):
        if loss.get(key, 1) != 1:
            net.conversion.lose(loss.at(key), "has no counterpart: the Huber loss bends at 1")
    loss.close()


def _target(net: Section, budget: Budget) -> None:
    kind = net.only("update_type", {"replace": "replace", "polyak": "polyak"}, "has no counterpart", default="replace")
    every = net.whole("update_frequency", 1)
    if kind == "polyak":
        net.need("polyak_coef")
        net.copy("polyak_coef", f"{NATIVE}.polyak")
        if every > budget.num_envs:
            net.conversion.lose(net.at("update_frequency"), "has no counterpart: polyak blends after every round")
    else:
        net.need("update_frequency")
        net.copy("update_frequency", f"{NATIVE}.target_update")
        net.drop({"polyak_coef": "left out: update_type is replace"})


def _no_target(settings: Section, net: Section) -> None:
    """Without a target net the newest weights are the target; here they are copied after every round."""
    settings.conversion.set(f"{NATIVE}.target_update", 1, settings.at("name"))
    why = "it has no target net: here the target is copied after every round, so it is at most one round old"
    settings.conversion.remark(settings.at("name"), why)
    net.drop(
        dict.fromkeys(("update_type", "update_frequency", "polyak_coef"), "left out: VanillaDQN has no target net")
    )
