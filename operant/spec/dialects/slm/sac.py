"""SoftActorCritic, and CrossQ, whose critics are renormalised and have no targets."""

from __future__ import annotations

import math
from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.arc import chain
from operant.spec.dialects.slm.dqn import replay, rounds, start
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.optim import critic_optimiser
from operant.spec.dialects.slm.schedule import NATIVE

FIRST_STEP = 1000  # SLM-Lab's default, if that many frames hold a batch
THEIR_SHARE, OUR_SHARE = 0.6, 0.98  # of log n, the target entropy of discrete actions
PDTYPES = {
    None: None,
    "default": None,
    "Normal": False,
    "MultivariateNormal": False,
    "Categorical": True,
    "GumbelSoftmax": True,
}
# The native limit that each becomes, and SLM-Lab's default.
LIMITS = {"log_alpha_min": ("temperature_min", -5.0), "log_alpha_max": ("temperature_max", 2.0)}
LARGEST_LOG = 13  # of a temperature that may be set here
NOT_READ = "left out: SLM-Lab's SoftActorCritic does not read it"
DROPPED: dict[str, str] = dict.fromkeys(
    ("explore_var_spec", "entropy_coef_spec", "val_loss_coef", "policy_loss_coef", "lam", "num_step_returns"), NOT_READ
)
WITHOUT = (
    "symlog", "alpha_lr", "alpha_anneal_frames", "entropy_anneal", "entropy_penalty_coef", "spectral_norm",
    "target_entropy", "normalize_v_targets",
)  # fmt: skip
NET_DROPPED: dict[str, str] = {
    "shared": "left out: actor and critics are apart",
    "log_std_init": "left out: the network gives the deviation",
    "use_same_optim": "left out: actor and critics have optimisers of their own",
}


def sac(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its memory, nets and targets."""
    settings, net = agent.below("algorithm"), agent.below("net")
    soft_settings(settings, "sac", budget, replay(agent.below("memory")))
    settings.close()
    _target(net)
    soft_net(net, budget)


def soft_settings(settings: Section, native: str, budget: Budget, batch_size: int) -> None:
    """What SAC and CrossQ have in common, for the native algorithm of this name."""
    settings.conversion.set(f"{NATIVE}.name", native, settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    rounds(settings, budget, iterations=budget.num_envs)
    start(settings, batch_size, default=max(FIRST_STEP, batch_size))
    settings.only("action_policy", {None: None, "default": None}, "has no counterpart: actions are drawn as they are")
    _temperature(settings, budget)
    settings.lacks(dict.fromkeys(WITHOUT, f"has no counterpart: {native} has no such setting"), (False,))
    settings.copy("policy_delay", f"{NATIVE}.policy_delay")
    settings.drop(DROPPED)


def _temperature(settings: Section, budget: Budget) -> None:
    """Fixed, or learnt within SLM-Lab's limits towards its target entropy."""
    is_discrete = settings.only("action_pdtype", PDTYPES, "has no counterpart: Categorical or Normal")
    if settings.get("fixed_alpha") is not None:
        settings.conversion.set(f"{NATIVE}.learn_temperature", False, settings.at("fixed_alpha"))
        settings.copy("fixed_alpha", f"{NATIVE}.temperature")
        settings.drop(dict.fromkeys(LIMITS, "left out: the temperature is fixed"))
        return
    _limits(settings)
    if is_discrete or (is_discrete is None and budget.discrete):
        _discrete_target(settings)


def _limits(settings: Section) -> None:
    """The logarithm of the temperature stays between two numbers."""
    for key, (setting, usual) in LIMITS.items():
        limit = settings.get(key, usual)
        if not is_number(limit) or abs(limit) > LARGEST_LOG:
            settings.conversion.refuse(settings.at(key), "is not the logarithm of a temperature")
        else:
            settings.conversion.set(f"{NATIVE}.{setting}", float(f"{math.exp(limit):.6g}"), settings.at(key))


def _discrete_target(settings: Section) -> None:
    at = settings.at("action_pdtype")
    settings.conversion.set(f"{NATIVE}.discrete_entropy", THEIR_SHARE, at)
    why = f"the target entropy of discrete actions is SLM-Lab's, {THEIR_SHARE} log n; ours is {OUR_SHARE} log n"
    settings.conversion.remark(at, why)


def _target(net: Section) -> None:
    """The target critics follow at every gradient step."""
    kind = net.only("update_type", {"polyak": "polyak"}, "has no counterpart: target critics blend by polyak")
    if kind is None:
        net.drop(dict.fromkeys(("polyak_coef", "update_frequency"), "left out with its update_type"))
        return
    net.need("polyak_coef")
    net.copy("polyak_coef", f"{NATIVE}.polyak")
    if net.whole("update_frequency", 1) > 1:
        net.conversion.remark(net.at("update_frequency"), "left out: target critics blend at every gradient step")


def soft_net(net: Section, budget: Budget) -> None:
    """The actor's net, which its critics share in shape, and its optimisers."""
    nets.layers(net, heads=("actor", "critic"))
    loss = net.below("loss_spec")
    loss.only("name", {"MSELoss": None}, "has no counterpart: critics learn by MSELoss", default="MSELoss")
    loss.close()
    net.get("shared")
    optim.actor_and_critic(net, budget, apart=True)
    net.drop({**nets.DROPPED, **NET_DROPPED})
    net.close()


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
        critic.conversion.set(f"{NATIVE}.critic_hidden", layers.widths, path)
        _renormalisation(critic, path, layers.renorms[0])
    elif found is not None:
        critic.conversion.refuse(found[0], "has no batch renormalisation, without which CrossQ has no counterpart")
    for key in ("init_fn", "clip_grad_val"):
        if critic.data.get(key) != actor.data.get(key):
            critic.conversion.lose(critic.at(key), "differs from the actor's, which has no counterpart")
            critic.get(key)
    critic_optimiser(critic.below("optim_spec"), actor.below("optim_spec"))
    critic.drop(CRITIC_DROPPED)
    critic.close()


def _renormalisation(critic: Section, path: Any, options: dict[str, Any]) -> None:
    """Its settings, which are the same in every layer."""
    for key, native in RENORM.items():
        if key in options:
            critic.conversion.set(f"{NATIVE}.{native}", options[key], path)
    others = {key: value for key, value in options.items() if key not in RENORM and (key, value) != ("eps", EPS)}
    if others:
        critic.conversion.lose(path, f"says {', '.join(others)} of its renormalisation, which has no counterpart")
