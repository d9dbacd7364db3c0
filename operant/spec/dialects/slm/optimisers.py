"""Optimisers, their schedulers and the limit of gradients, which SLM-Lab keeps in the `net` section."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.slm.learning import CRITICS, DQN, SOFT
from operant.spec.dialects.slm.sizes import sizes_of
from operant.spec.settings.optimizers import TAKES
from operant.spec.settings.schedulers import SCHEDULERS

NATIVE = "agent.net.optimizer"
TORCH: dict[str, dict[str, Any]] = {  # the native name, and torch's defaults that differ from ours
    "Adam": {"name": "adam", "lr": 1e-3, "eps": 1e-8},
    "AdamW": {"name": "adamw", "lr": 1e-3, "eps": 1e-8, "weight_decay": 0.01},
    "RMSprop": {"name": "rmsprop", "lr": 1e-2, "eps": 1e-8},
    "SGD": {"name": "sgd", "lr": 1e-3},
    "NAdam": {"name": "nadam", "lr": 2e-3, "eps": 1e-8},
    "RAdam": {"name": "radam", "lr": 1e-3, "eps": 1e-8},
    "Adamax": {"name": "adamax", "lr": 2e-3, "eps": 1e-8},
    "Adagrad": {"name": "adagrad", "lr": 1e-2, "eps": 1e-10},
    "Adadelta": {"name": "adadelta", "lr": 1.0, "eps": 1e-6},
    "ASGD": {"name": "asgd", "lr": 1e-2},
    "Rprop": {"name": "rprop", "lr": 1e-2},
}
SHARED = {"GlobalAdam": "Adam", "GlobalRMSprop": "RMSprop"}
COMPUTING = ("foreach", "fused", "capturable", "differentiable")


def optimisers(net: Section, key: str) -> None:
    """The optimiser of a net that has one, `optim_spec`, or those of actor and critic."""
    if net.conversion.kind in CRITICS:
        _actor_and_critic(net)
        return
    _optimiser(net.below(key))
    why = "left out: SLM-Lab reads optim_spec for this algorithm"
    net.drop(dict.fromkeys(("actor_optim_spec", "critic_optim_spec"), why))


def _actor_and_critic(net: Section) -> None:
    """`optim_spec`, or one each, as `shared` and `use_same_optim` decide."""
    shared, same = bool(net.get("shared")), bool(net.get("use_same_optim"))
    actor = "actor_optim_spec" if net.get("actor_optim_spec") is not None else "optim_spec"
    critic = "critic_optim_spec" if net.get("critic_optim_spec") is not None else "optim_spec"
    given = _optimiser(net.below(actor))
    if not shared and not same and actor != critic:
        _critic(net.below(critic), given)
    elif actor != critic == "critic_optim_spec":
        why = "shared" if shared else "use_same_optim"
        net.remark(critic, f"left out: with {why} SLM-Lab steps everything by the actor's optimiser")
    net.drop({"optim_spec": "left out: the optimisers of actor and critic come before it"})


def _optimiser(spec: Section) -> dict[str, Any]:
    """Take over one optimiser with torch's defaults written out; what it says, to compare another with."""
    name = spec.get("name", None if spec.data else "Adam")
    torch = _torch(name)
    if not torch:
        spec.lose("name", f"has no counterpart; there are {', '.join(TORCH)}")
        spec.skip()
        return {}
    if name in SHARED:
        spec.remark("name", f"is {SHARED[name]} here: one process has all environments, so no steps are shared")
    spec.set("name", f"{NATIVE}.name", torch["name"])
    for key in ("lr", *TAKES[torch["name"]]):
        spec.copy(key, f"{NATIVE}.{key}", default=torch.get(key))
    return _said(spec)


def _critic(spec: Section, actor: dict[str, Any]) -> None:
    """The critic may learn at another rate, but by the same kind of optimiser."""
    spec.copy("lr", f"{NATIVE}.critic_lr", default=_torch(spec.need("name")).get("lr"))
    if actor and _said(spec) != actor:
        spec.conversion.lose(spec.path, "differs from the actor's in more than lr, which has no counterpart")


def critic_optimiser(critic: Section, key: str) -> None:
    """The optimiser of a critic that has a net of its own: as the actor's, but for its rate."""
    actor = Section(critic.conversion, ("agent", "net", "optim_spec"))
    if critic.data:
        _critic(critic.below(key), _said(actor))


def _torch(name: Any) -> dict[str, Any]:
    """What is known of an optimiser; nothing of one that has no counterpart."""
    return TORCH.get(SHARED.get(name, name), {}) if isinstance(name, str) else {}


def _said(spec: Section) -> dict[str, Any]:
    """All that an optimiser says apart from its rate, with defaults; what torch would not take is refused."""
    spec.drop(dict.fromkeys(COMPUTING, "left out: it changes how a step is computed, not what it is"))
    torch = _torch(spec.data.get("name", None if spec.data else "Adam"))
    keys = TAKES[torch["name"]] if torch else ()
    found = {"name": torch.get("name"), **{key: spec.get(key, torch.get(key)) for key in keys}}
    spec.get("lr")
    spec.get("name")
    spec.refuse_unread()
    return found


def gradient_limit(net: Section, key: str) -> None:
    """The largest norm of a gradient, of each net by itself where there are two."""
    net.set(key, f"{NATIVE}.clip_grad_norm", net.get(key))
    if net.conversion.kind in CRITICS and not net.get("shared") and net.get(key) is not None:
        net.set(key, f"{NATIVE}.clip_each", True)


BY_ROUNDS = "counts gradient steps here; SLM-Lab counts rounds of them"


def scheduler(net: Section, key: str) -> None:
    """LinearToZero by frames, or torch's own, which count updates."""
    if not net.get(key):
        return
    spec, sizes = net.below(key), sizes_of(net.conversion)
    name = str(spec.need("name"))
    if name in ("LinearToZero", "LinearToMin"):
        _linear(spec, name)
    elif name in SCHEDULERS and not sizes.older:
        for field in SCHEDULERS[name].model_fields:
            spec.copy(field, f"{NATIVE}.scheduler.{field}")
        spec.drop({"last_epoch": "left out: a run starts at the start", "verbose": "left out: it only prints"})
        spec.refuse_unread()
        if net.conversion.kind not in ("ActorCritic", "Reinforce", "SARSA"):
            spec.remark("name", BY_ROUNDS)
    else:
        counts = f"counts frames in this older form; here {name} counts updates" if name in SCHEDULERS else ""
        spec.lose("name", counts or f"has no counterpart; there are LinearToZero, {', '.join(SCHEDULERS)}")
        spec.skip()


def _linear(spec: Section, name: str) -> None:
    """A straight line to zero, or to a share of the rate; of a run that ends before it, as far as it comes."""
    conversion, sizes = spec.conversion, sizes_of(spec.conversion)
    whole = spec.whole("frame", sizes.max_frame)
    least = spec.get("min_factor", 0.0) if name == "LinearToMin" else 0.0
    if name == "LinearToMin":
        spec.remark("name", "falls to min_factor of the rate; SLM-Lab 5 itself has no such scheduler")
    frames = whole // sizes.num_envs if conversion.kind in (*SOFT, *DQN) else whole
    if frames < whole:
        why = f"ends at frame {frames:,}: SLM-Lab's off-policy algorithms count each of num_envs environments once more"
        spec.remark("frame", why)
    if frames < sizes.max_frame:
        spec.lose("frame", f"ends before max_frame = {sizes.max_frame}, which has no counterpart")
    elif is_number(least):
        left = max(least, 1 - sizes.max_frame / frames) if frames else least
        spec.set("frame", f"{NATIVE}.lr_end_fraction", round(left, 12))
