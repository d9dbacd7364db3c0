"""Optimisers, their schedulers and the limit of gradients, which SLM-Lab keeps in the `net` section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ledger import Section

NATIVE = "agent.net.optimizer"


@dataclass(frozen=True)
class Torch:
    """A torch optimiser: its native name and torch's defaults, where these differ from ours."""

    name: str
    lr: float
    weight_decay: float = 0.0
    has_eps: bool = True


TORCH = {
    "Adam": Torch("adam", 1e-3),
    "AdamW": Torch("adamw", 1e-3, weight_decay=0.01),
    "RMSprop": Torch("rmsprop", 1e-2),
    "SGD": Torch("sgd", 1e-3, has_eps=False),
}
EPS = 1e-8
FIXED: dict[str, Any] = {"betas": [0.9, 0.999], "alpha": 0.99, "momentum": 0, "nesterov": False, "amsgrad": False}


def one_optimiser(net: Section, budget: Budget) -> None:
    """The optimiser of a net that has one: `optim_spec`."""
    _optimiser(net.below("optim_spec"))
    _limit_and_scheduler(net, budget)


def actor_and_critic(net: Section, budget: Budget) -> None:
    """The optimisers of actor and critic: `optim_spec`, or one each, as `shared` and `use_same_optim` decide."""
    ledger, shared, same = net.ledger, bool(net.get("shared")), bool(net.get("use_same_optim"))
    actor = "actor_optim_spec" if net.get("actor_optim_spec") is not None else "optim_spec"
    critic = "critic_optim_spec" if net.get("critic_optim_spec") is not None else "optim_spec"
    given = _optimiser(net.below(actor))
    if shared or same or actor == critic:
        why = "shared" if shared else "use_same_optim"
        if critic != actor and critic == "critic_optim_spec":
            ledger.remark(net.at(critic), f"left out: with {why} SLM-Lab steps everything by the actor's optimiser")
    else:
        _critic(net.below(critic), given)
    net.drop({"optim_spec": "left out: the optimisers of actor and critic come before it"})
    _limit_and_scheduler(net, budget)
    if not shared and net.get("clip_grad_val") is not None:
        ledger.set(f"{NATIVE}.clip_each", True, net.at("clip_grad_val"))


def _optimiser(spec: Section) -> dict[str, Any]:
    """Take over one optimiser with torch's defaults written out; what it says, to compare another with."""
    name = spec.need("name")
    if name is None:
        return {}
    torch = TORCH.get(name) if isinstance(name, str) else None
    if torch is None:
        spec.ledger.lose(spec.at("name"), f"has no counterpart; there are {', '.join(TORCH)}")
        return {}
    spec.ledger.set(f"{NATIVE}.name", torch.name, spec.at("name"))
    spec.copy("lr", f"{NATIVE}.lr", default=torch.lr)
    if torch.has_eps:
        spec.copy("eps", f"{NATIVE}.eps", default=EPS)
    spec.copy("weight_decay", f"{NATIVE}.weight_decay", default=torch.weight_decay or None)
    _only_defaults(spec)
    return _apart_from_lr(spec)


def _critic(spec: Section, actor: dict[str, Any]) -> None:
    """The critic may learn at another rate, but by the same kind of optimiser."""
    torch = TORCH.get(str(spec.need("name")))
    spec.copy("lr", f"{NATIVE}.critic_lr", default=torch.lr if torch else None)
    for key in ("eps", "weight_decay"):
        spec.get(key)
    _only_defaults(spec)
    if actor and _apart_from_lr(spec) != actor:
        spec.ledger.lose(spec.path, "differs from the actor's in more than lr, which has no counterpart")


def _apart_from_lr(spec: Section) -> dict[str, Any]:
    torch = TORCH.get(str(spec.data.get("name")))
    defaults = {"eps": EPS, "weight_decay": torch.weight_decay if torch else None}
    return {**defaults, **{key: value for key, value in spec.data.items() if key != "lr" and value is not None}}


def _only_defaults(spec: Section) -> None:
    for key, usual in FIXED.items():
        if spec.get(key, usual) != usual:
            spec.ledger.lose(spec.at(key), f"has no counterpart: it is always {usual}")
    spec.close()


def _limit_and_scheduler(net: Section, budget: Budget) -> None:
    net.ledger.set(f"{NATIVE}.clip_grad_norm", net.get("clip_grad_val"), net.at("clip_grad_val"))
    if net.get("lr_scheduler_spec") is None:
        return
    spec = net.below("lr_scheduler_spec")
    if spec.need("name") == "LinearToZero":
        _linear_to_zero(spec, budget)
        spec.close()
    else:
        net.ledger.lose(spec.at("name"), "has no counterpart: learning rates are constant or fall in a straight line")


def _linear_to_zero(spec: Section, budget: Budget) -> None:
    """Exact when the line reaches zero at the end of the run or would reach it later."""
    frames = spec.whole("frame", budget.max_frame)
    if frames < budget.max_frame:
        spec.ledger.lose(spec.at("frame"), f"ends before max_frame = {budget.max_frame}, which has no counterpart")
        return
    left = 1 - budget.max_frame / frames if frames else 0.0
    spec.ledger.set(f"{NATIVE}.lr_end_fraction", round(left, 12), spec.at("frame"))
