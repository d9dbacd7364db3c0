"""The closed sets of optimisers and schedulers, held against torch's own signatures."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from operant.spec.settings.optimizers import TAKES, Name, OptimizerSpec
from operant.spec.settings.schedulers import SCHEDULERS

# Arguments that say how a step is computed, not what it is.
COMPUTING = {"foreach", "maximize", "capturable", "differentiable", "fused"}
# Defaults that are ours: `eps` suits the small batches of reinforcement learning, and weights decay only when asked.
OURS = {"eps", "weight_decay", "alpha"}
NOT_FLAT = {"Adafactor", "Muon", "LBFGS", "SparseAdam"}
NEEDS_MORE = {
    "LambdaLR": "a function",
    "MultiplicativeLR": "a function",
    "ReduceLROnPlateau": "a score",
    "ChainedScheduler": "other schedulers",
    "SequentialLR": "other schedulers",
}
SET_HERE = {"optimizer", "last_epoch", "cycle_momentum", "base_momentum", "max_momentum", "scale_fn", "scale_mode"}
OF_EPOCHS = {"epochs", "steps_per_epoch", "max_lr"}


def classes(module: Any, base: type) -> dict[str, type]:
    found = {name: each for name, each in vars(module).items() if isinstance(each, type) and issubclass(each, base)}
    return {name: each for name, each in found.items() if each is not base and not name.startswith("_")}


def signature(owner: type) -> dict[str, inspect.Parameter]:
    return {name: each for name, each in inspect.signature(owner).parameters.items() if name != "params"}


def test_the_optimisers_are_those_of_torch_that_step_a_flat_tensor() -> None:
    optim = pytest.importorskip("torch.optim")
    known = {name for name in classes(optim, optim.Optimizer) if name not in NOT_FLAT}
    assert {name.lower() for name in known} == set(TAKES) == set(get_args(Name))


@pytest.mark.parametrize("name", TAKES)
def test_an_optimiser_takes_what_torch_takes_by_torchs_defaults(name: str) -> None:
    optim = pytest.importorskip("torch.optim")
    owner = {each.lower(): found for each, found in classes(optim, optim.Optimizer).items()}[name]
    wanted = {key: each for key, each in signature(owner).items() if key not in COMPUTING | {"lr"}}
    if name == "adam":
        del wanted["decoupled_weight_decay"]  # that is adamw
    assert set(TAKES[name]) == set(wanted)
    spec = OptimizerSpec(name=name)  # type: ignore[arg-type]
    for key in set(TAKES[name]) - OURS:
        assert getattr(spec, key) == wanted[key].default, key
    assert "alpha" not in spec.arguments()


def test_every_setting_belongs_to_an_optimiser_or_to_all() -> None:
    of_all = {"name", "lr", "critic_lr", "lr_end_fraction", "scheduler", "clip_grad_norm", "clip_each"}
    assert set(OptimizerSpec.model_fields) == of_all | {key for keys in TAKES.values() for key in keys}


def test_the_schedulers_are_those_of_torch_that_need_only_numbers() -> None:
    module = pytest.importorskip("torch.optim.lr_scheduler")
    assert set(classes(module, module.LRScheduler)) - set(NEEDS_MORE) == set(SCHEDULERS)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_takes_what_torch_takes_by_torchs_defaults(name: str) -> None:
    module = pytest.importorskip("torch.optim.lr_scheduler")
    unset = SET_HERE | (OF_EPOCHS if name == "OneCycleLR" else set())
    wanted = {key: each for key, each in signature(getattr(module, name)).items() if key not in unset}
    fields = {key: field for key, field in SCHEDULERS[name].model_fields.items() if key != "name"}
    assert set(fields) == set(wanted)
    for key, field in fields.items():
        told = wanted[key].default
        is_required = told is inspect.Parameter.empty or (key, told) == ("total_steps", None)
        assert field.is_required() == is_required, key
        assert field.is_required() or field.default == told, key
