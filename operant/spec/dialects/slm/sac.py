"""SoftActorCritic."""

from __future__ import annotations

import math

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.offered import NATIVE, copy_if_offered, offers
from operant.spec.dialects.slm.replay import replay, rounds, start

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
# Each under its native name, should there be one.
OPTIONS = {
    key: key
    for key in (
        "symlog", "alpha_lr", "alpha_anneal_frames", "entropy_anneal", "entropy_penalty_coef", "spectral_norm",
        "target_entropy", "normalize_v_targets",
    )
}  # fmt: skip
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
    settings.ledger.set(f"{NATIVE}.name", native, settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    rounds(settings, budget, iterations=budget.num_envs)
    start(settings, batch_size, default=max(FIRST_STEP, batch_size))
    settings.only("action_policy", {None: None, "default": None}, "has no counterpart: actions are drawn as they are")
    _temperature(settings, native, budget)
    copy_if_offered(settings, native, OPTIONS)
    copy_if_offered(settings, native, {"policy_delay": "policy_delay"}, off=1)
    settings.drop(DROPPED)


def _temperature(settings: Section, native: str, budget: Budget) -> None:
    """Fixed, or learnt within SLM-Lab's limits towards its target entropy."""
    is_discrete = settings.only("action_pdtype", PDTYPES, "has no counterpart: Categorical or Normal")
    if settings.get("fixed_alpha") is not None:
        settings.ledger.set(f"{NATIVE}.learn_temperature", False, settings.at("fixed_alpha"))
        settings.copy("fixed_alpha", f"{NATIVE}.temperature")
        settings.drop(dict.fromkeys(LIMITS, "left out: the temperature is fixed"))
        return
    _limits(settings, native)
    if is_discrete or (is_discrete is None and budget.discrete):
        _discrete_target(settings, native)


def _limits(settings: Section, native: str) -> None:
    """The logarithm of the temperature stays between two numbers."""
    for key, (setting, usual) in LIMITS.items():
        limit = settings.get(key, usual)
        if isinstance(limit, bool) or not isinstance(limit, int | float) or abs(limit) > LARGEST_LOG:
            settings.ledger.refuse(settings.at(key), "is not the logarithm of a temperature")
        elif offers(native, setting):
            settings.ledger.set(f"{NATIVE}.{setting}", float(f"{math.exp(limit):.6g}"), settings.at(key))
        elif limit != usual:
            settings.ledger.lose(settings.at(key), "has no counterpart: the temperature has no limits")


def _discrete_target(settings: Section, native: str) -> None:
    at = settings.at("action_pdtype")
    if offers(native, "discrete_entropy"):
        settings.ledger.set(f"{NATIVE}.discrete_entropy", THEIR_SHARE, at)
    else:
        settings.ledger.set(f"{NATIVE}.entropy_scale", round(THEIR_SHARE / OUR_SHARE, 6), at)
    why = f"the target entropy of discrete actions is SLM-Lab's, {THEIR_SHARE} log n; ours is {OUR_SHARE} log n"
    settings.ledger.remark(at, why)


def _target(net: Section) -> None:
    """The target critics follow at every gradient step."""
    kind = net.only("update_type", {"polyak": "polyak"}, "has no counterpart: target critics blend by polyak")
    if kind is None:
        net.drop(dict.fromkeys(("polyak_coef", "update_frequency"), "left out with its update_type"))
        return
    net.need("polyak_coef")
    net.copy("polyak_coef", f"{NATIVE}.polyak")
    if net.whole("update_frequency", 1) > 1:
        net.ledger.remark(net.at("update_frequency"), "left out: target critics blend at every gradient step")


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
