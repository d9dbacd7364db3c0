"""VanillaDQN, DQN and DoubleDQN."""

from __future__ import annotations

from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ledger import Section
from operant.spec.dialects.slm.schedule import schedule

NATIVE = "agent.algorithm"
LOSSES = {"MSELoss": "mse", "SmoothL1Loss": "huber", "HuberLoss": "huber"}
POLICIES = {"epsilon_greedy": "epsilon_greedy"}
NO_CRITIC = "left out: DQN has no critic"
NET_DROPPED = {
    **dict.fromkeys(("shared", "use_same_optim", "actor_optim_spec", "critic_optim_spec"), NO_CRITIC),
    "log_std_init": "left out: DQN has no continuous actions",
}
IS_DOUBLE = "SLM-Lab's DQN selects with the online net, which is Double DQN; `double: false` is the plain one"


def dqn(agent: Section, budget: Budget) -> None:
    """Take over one of the three, its memory, net and target."""
    settings, net = agent.below("algorithm"), agent.below("net")
    name = settings.get("name")
    settings.ledger.set(f"{NATIVE}.name", "dqn", settings.at("name"))
    settings.ledger.set(f"{NATIVE}.double", name != "VanillaDQN", settings.at("name"))
    if name == "DQN":
        settings.ledger.remark(settings.at("name"), IS_DOUBLE)
    batch_size = _memory(agent.below("memory"))
    _settings(settings, budget, batch_size)
    _loss(net)
    if name == "VanillaDQN":
        _no_target(settings, net)
    else:
        _target(net, budget)
    settings.close()
    nets.layers(net)
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED})
    net.close()


def _settings(settings: Section, budget: Budget, batch_size: int) -> None:
    ledger = settings.ledger
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    settings.get("action_pdtype")  # without a policy that samples, the distribution decides nothing
    policy = settings.only("action_policy", POLICIES, "has no counterpart in this version; there is epsilon_greedy")
    if policy is None:
        settings.drop({"explore_var_spec": "left out with its action policy: epsilon is the native default"})
    else:
        settings.need("explore_var_spec")
        schedule(settings, "explore_var_spec", f"{NATIVE}.epsilon")
    _rounds(settings, budget)
    start = settings.whole("training_start_step", batch_size)
    ledger.set(f"{NATIVE}.training_start", max(start, batch_size), settings.at("training_start_step"))
    if start < batch_size:
        ledger.remark(settings.at("training_start_step"), f"raised to {batch_size}, the first frame that holds a batch")


def _rounds(settings: Section, budget: Budget) -> None:
    """Gradient steps per round, and rounds: SLM-Lab trains at most once per step of all environments."""
    ledger = settings.ledger
    batches, repeats = settings.whole("training_iter", 1), settings.whole("training_batch_iter", 1)
    ledger.set(f"{NATIVE}.training_iter", batches * repeats, settings.at("training_iter"))
    if repeats > 1:
        why = f"{batches} x {repeats} gradient steps become {batches * repeats}, each on a batch of its own"
        ledger.remark(settings.at("training_batch_iter"), why)
    frequency = settings.whole("training_frequency", 1)
    ledger.set(f"{NATIVE}.training_frequency", max(frequency, budget.num_envs), settings.at("training_frequency"))
    if frequency < budget.num_envs:
        why = f"becomes {budget.num_envs} frames, one step of all environments: SLM-Lab trains no more often either"
        ledger.remark(settings.at("training_frequency"), why)


def _loss(net: Section) -> None:
    loss = net.below("loss_spec")
    found = loss.only("name", LOSSES, f"has no counterpart; there are {', '.join(LOSSES)}", default="MSELoss")
    if found is not None:
        net.ledger.set(f"{NATIVE}.loss", found, loss.at("name"))
    for key in ("beta", "delta"):
        if loss.get(key, 1) != 1:
            net.ledger.lose(loss.at(key), "has no counterpart: the Huber loss bends at 1")
    loss.close()


def _target(net: Section, budget: Budget) -> None:
    kind = net.only("update_type", {"replace": "replace", "polyak": "polyak"}, "has no counterpart", default="replace")
    every = net.whole("update_frequency", 1)
    if kind == "polyak":
        net.need("polyak_coef")
        net.copy("polyak_coef", f"{NATIVE}.polyak")
        if every > budget.num_envs:
            net.ledger.lose(net.at("update_frequency"), "has no counterpart: polyak blends after every round")
    else:
        net.need("update_frequency")
        net.copy("update_frequency", f"{NATIVE}.target_update")
        net.drop({"polyak_coef": "left out: update_type is replace"})


def _no_target(settings: Section, net: Section) -> None:
    """Without a target net the newest weights are the target; here they are copied after every round."""
    settings.ledger.set(f"{NATIVE}.target_update", 1, settings.at("name"))
    why = "it has no target net: here the target is copied after every round, so it is at most one round old"
    settings.ledger.remark(settings.at("name"), why)
    net.drop(
        dict.fromkeys(("update_type", "update_frequency", "polyak_coef"), "left out: VanillaDQN has no target net")
    )


def _memory(memory: Section) -> int:
    """Take over the replay; its batch size."""
    ledger = memory.ledger
    names = {"Replay": "replay", "PrioritizedReplay": "prioritised"}
    name = memory.only("name", names, f"has no counterpart for DQN; there are {', '.join(names)}")
    ledger.set("agent.memory.name", name or "replay", memory.at("name"))
    for key in ("batch_size", "max_size"):
        memory.need(key)
        memory.copy(key, f"agent.memory.{key}")
    if name == "prioritised":
        memory.copy("alpha", "agent.memory.alpha")
        memory.copy("epsilon", "agent.memory.epsilon")
        ledger.set("agent.memory.beta", 0.0, memory.at("name"))
        ledger.remark(
            memory.at("name"), "SLM-Lab leaves its bias uncorrected, which is beta 0; 0.4 and above corrects it"
        )
    else:
        memory.drop(dict.fromkeys(("alpha", "epsilon"), "left out: only PrioritizedReplay reads it"))
    if memory.get("use_cer"):
        ledger.lose(memory.at("use_cer"), "has no counterpart in this version: combined experience replay")
    size = memory.whole("batch_size", 1)
    memory.close()
    return size
