"""Optimisers, their schedulers and the limit of gradients, which SLM-Lab keeps in the `net` section."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.slm.env import Budget
from operant.spec.settings.optimizers import TAKES
from operant.spec.settings.schedulers import SCHEDULERS

NATIVE = "agent.net.optimizer"


@dataclass(frozen=True)
class Torch:
    """A torch optimiser: its native name and torch's defaults, where these differ from ours."""

    name: str
    lr: float
    eps: float = 1e-8
    weight_decay: float = 0.0


TORCH = {
    "Adam": Torch("adam", 1e-3),
    "AdamW": Torch("adamw", 1e-3, weight_decay=0.01),
    "RMSprop": Torch("rmsprop", 1e-2),
    "SGD": Torch("sgd", 1e-3),
    "NAdam": Torch("nadam", 2e-3),
    "RAdam": Torch("radam", 1e-3),
    "Adamax": Torch("adamax", 2e-3),
    "Adagrad": Torch("adagrad", 1e-2, eps=1e-10),
    "Adadelta": Torch("adadelta", 1.0, eps=1e-6),
    "ASGD": Torch("asgd", 1e-2),
    "Rprop": Torch("rprop", 1e-2),
}
SHARED = {"GlobalAdam": "Adam", "GlobalRMSprop": "RMSprop"}
DISTRIBUTED = "shares its steps among processes, which has no counterpart; alone it is {}"
COMPUTING = ("foreach", "fused", "capturable", "differentiable")


def one_optimiser(net: Section, budget: Budget) -> None:
    """The optimiser of a net that has one: `optim_spec`."""
    _optimiser(net.below("optim_spec"))
    _limit_and_scheduler(net, budget)


def actor_and_critic(net: Section, budget: Budget, apart: bool = False) -> None:
    """The optimisers of actor and critic: `optim_spec`, or one each, as `shared` and `use_same_optim` decide.

    `apart` is true of algorithms whose actor and critics have optimisers of their own in any case.
    """
    conversion, shared = net.conversion, bool(net.get("shared")) and not apart
    same = bool(net.get("use_same_optim")) and not apart
    actor = "actor_optim_spec" if net.get("actor_optim_spec") is not None else "optim_spec"
    critic = "critic_optim_spec" if net.get("critic_optim_spec") is not None else "optim_spec"
    given = _optimiser(net.below(actor))
    if shared or same or actor == critic:
        why = "shared" if shared else "use_same_optim"
        if critic != actor and critic == "critic_optim_spec":
            conversion.remark(net.at(critic), f"left out: with {why} SLM-Lab steps everything by the actor's optimiser")
    else:
        _critic(net.below(critic), given)
    net.drop({"optim_spec": "left out: the optimisers of actor and critic come before it"})
    _limit_and_scheduler(net, budget)
    if not shared and not apart and net.get("clip_grad_val") is not None:
        conversion.set(f"{NATIVE}.clip_each", True, net.at("clip_grad_val"))


def _optimiser(spec: Section) -> dict[str, Any]:
    """Take over one optimiser with torch's defaults written out; what it says, to compare another with."""
    name = spec.need("name")
    if name is None:
        return {}
    torch = _torch(name)
    if torch is not None and name in SHARED:
        spec.conversion.lose(spec.at("name"), DISTRIBUTED.format(SHARED[name]))
    if torch is None:
        spec.conversion.lose(spec.at("name"), f"has no counterpart; there are {', '.join(TORCH)}")
        spec.skip()
        return {}
    spec.conversion.set(f"{NATIVE}.name", torch.name, spec.at("name"))
    spec.copy("lr", f"{NATIVE}.lr", default=torch.lr)
    for key in TAKES[torch.name]:
        spec.copy(key, f"{NATIVE}.{key}", default=_default(torch, key))
    return _close(spec)


def _critic(spec: Section, actor: dict[str, Any]) -> None:
    """The critic may learn at another rate, but by the same kind of optimiser."""
    torch = _torch(spec.need("name"))
    spec.copy("lr", f"{NATIVE}.critic_lr", default=torch.lr if torch else None)
    for key in TAKES[torch.name] if torch else ():
        spec.get(key)
    if actor and _close(spec) != actor:
        spec.conversion.lose(spec.path, "differs from the actor's in more than lr, which has no counterpart")


def critic_optimiser(critic: Section, actor: Section) -> None:
    """The optimiser of a critic that has a net of its own: as the actor's, but for its rate."""
    _critic(critic, _close(actor))


def _torch(name: Any) -> Torch | None:
    return TORCH.get(SHARED.get(name, name)) if isinstance(name, str) else None


def _default(torch: Torch, key: str) -> float | None:
    """Torch's default of a setting, where it has to be written out."""
    return {"eps": torch.eps, "weight_decay": torch.weight_decay or None}.get(key)


def _close(spec: Section) -> dict[str, Any]:
    """All that an optimiser says apart from its rate, with defaults; whatever else it says was not understood."""
    spec.drop(dict.fromkeys(COMPUTING, "left out: it changes how a step is computed, not what it is"))
    torch = _torch(spec.data.get("name"))
    keys = TAKES[torch.name] if torch else ()
    spec.close()
    return {"name": torch and torch.name, **{key: spec.get(key, torch and _default(torch, key)) for key in keys}}


def _limit_and_scheduler(net: Section, budget: Budget) -> None:
    net.conversion.set(f"{NATIVE}.clip_grad_norm", net.get("clip_grad_val"), net.at("clip_grad_val"))
    if not net.get("lr_scheduler_spec"):
        return
    spec = net.below("lr_scheduler_spec")
    name = str(spec.need("name"))
    if name == "LinearToZero":
        _linear_to_zero(spec, budget)
        spec.close()
    elif name in SCHEDULERS and not budget.older:
        _scheduler(spec, name)
    else:
        counts = f"counts frames in this older form; here {name} counts updates" if name in SCHEDULERS else ""
        net.conversion.lose(
            spec.at("name"), counts or f"has no counterpart; there are LinearToZero, {', '.join(SCHEDULERS)}"
        )
        spec.skip()


def _scheduler(spec: Section, name: str) -> None:
    """Torch's own, of the same name and the same unit: a step of the optimiser."""
    for key in SCHEDULERS[name].model_fields:
        spec.copy(key, f"{NATIVE}.scheduler.{key}")
    spec.drop({"last_epoch": "left out: a run starts at the start", "verbose": "left out: it only prints"})
    spec.close()


def _linear_to_zero(spec: Section, budget: Budget) -> None:
    """Exact when the line reaches zero at the end of the run or would reach it later."""
    frames = spec.whole("frame", budget.max_frame)
    if frames < budget.max_frame:
        spec.conversion.lose(spec.at("frame"), f"ends before max_frame = {budget.max_frame}, which has no counterpart")
        return
    left = 1 - budget.max_frame / frames if frames else 0.0
    spec.conversion.set(f"{NATIVE}.lr_end_fraction", round(left, 12), spec.at("frame"))
