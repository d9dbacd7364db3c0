"""VanillaDQN, DQN and DoubleDQN."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.exploring import exploration
from operant.spec.dialects.slm.replay import replay, rounds, start

NATIVE = "agent.algorithm"
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
    settings.ledger.set(f"{NATIVE}.name", "dqn", settings.at("name"))
    settings.ledger.set(f"{NATIVE}.double", name != "VanillaDQN", settings.at("name"))
    if name == "DQN":
        settings.ledger.remark(settings.at("name"), IS_DOUBLE)
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    exploration(settings, "dqn")
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
