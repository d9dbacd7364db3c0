"""CrossQ: soft actor-critic whose critics are renormalised and have no targets."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm.arc import chain
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.offered import NATIVE
from operant.spec.dialects.slm.optim import critic_optimiser
from operant.spec.dialects.slm.replay import replay
from operant.spec.dialects.slm.sac import soft_net, soft_settings

NO_TARGET: dict[str, str] = dict.fromkeys(
    ("update_type", "update_frequency", "polyak_coef"), "left out: CrossQ has no target net"
)
OWN = "left out: the actor's says the same for both"
CRITIC_DROPPED: dict[str, str] = {
    **NO_TARGET,
    **dict.fromkeys(
        ("hid_layers_activation", "init_fn", "clip_grad_val", "loss_spec", "lr_scheduler_spec", "gpu"), OWN
    ),
}
RENORM = {"momentum": "renorm_momentum", "warmup_steps": "renorm_warm_up"}
EPS = 1e-3


def crossq(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its memory, the actor's net and the critics'."""
    settings, net, critic = agent.below("algorithm"), agent.below("net"), agent.below("critic_net")
    soft_settings(settings, "crossq", budget, replay(agent.below("memory")))
    settings.close()
    net.drop(NO_TARGET)
    soft_net(net, budget)
    agent.need("critic_net")
    _critic(critic, net)


def _critic(critic: Section, actor: Section) -> None:
    critic.need("type")
    found = chain(critic)
    if found is not None and found[1].renorms:
        path, layers = found
        critic.ledger.set(f"{NATIVE}.critic_hidden", layers.widths, path)
        _renormalisation(critic, path, layers.renorms[0])
    elif found is not None:
        critic.ledger.refuse(found[0], "has no batch renormalisation, without which CrossQ has no counterpart")
    for key in ("init_fn", "clip_grad_val"):
        if critic.data.get(key) != actor.data.get(key):
            critic.ledger.lose(critic.at(key), "differs from the actor's, which has no counterpart")
            critic.get(key)
    critic_optimiser(critic.below("optim_spec"), actor.below("optim_spec"))
    critic.drop(CRITIC_DROPPED)
    critic.close()


def _renormalisation(critic: Section, path: Any, options: dict[str, Any]) -> None:
    """Its settings, which are the same in every layer."""
    for key, native in RENORM.items():
        if key in options:
            critic.ledger.set(f"{NATIVE}.{native}", options[key], path)
    others = {key: value for key, value in options.items() if key not in RENORM and (key, value) != ("eps", EPS)}
    if others:
        critic.ledger.lose(path, f"says {', '.join(others)} of its renormalisation, which has no counterpart")
