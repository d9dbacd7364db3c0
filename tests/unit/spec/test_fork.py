"""Every setting says what it does to a checkpoint, and a fork is refused by what it says."""

from __future__ import annotations

from typing import Any

import pytest

from operant.errors import UsageError
from operant.spec.field_types import field_type
from operant.spec.fields import Closed, fork_rule
from operant.spec.fork import changes, check_fork
from operant.spec.paths import SECTIONS
from operant.spec.schema import Spec


def spec_of(**sections: Any) -> Spec:
    return Spec.model_validate({"name": "a", **sections})


def algorithm(**settings: Any) -> dict[str, Any]:
    return {"agent": {"algorithm": settings}}


def optimizer(**settings: Any) -> dict[str, Any]:
    return {"agent": {"net": {"optimizer": settings}}}


def told(before: Spec, after: Spec) -> str:
    with pytest.raises(UsageError) as refused:
        check_fork(before, after, "runs/a", "runs/a/spec.json")
    return str(refused.value)


def every_class() -> set[type[Closed]]:
    """All settings classes that a spec can hold, found from the top and from the help, whichever knows more."""
    found: set[type[Closed]] = set()
    waiting: list[type[Closed]] = [Spec, *SECTIONS.values()]
    while waiting:
        model = waiting.pop()
        if model in found:
            continue
        found.add(model)
        for field in model.model_fields.values():
            kind = field_type(field)
            waiting += [each for each in (kind.section, kind.item and kind.item.section) if each]
            waiting += list(kind.one_of.registry.values()) if kind.one_of else []
    return found


CLASSES: list[type[Closed]] = sorted(every_class(), key=lambda each: each.__name__)


def test_every_setting_has_a_rule() -> None:
    for model, name, field in ((kind, *each) for kind in CLASSES for each in kind.model_fields.items()):
        rule = fork_rule(field)
        if field.annotation is Any and field.is_required():
            continue  # the tag of an abstract class, which each of its classes narrows
        assert rule is not None, f"{model.__name__}.{name}: say what a change does to a checkpoint (spec/fields.py)"
        assert bool(rule.why) == (rule.kind in ("fixed", "widens")), f"{model.__name__}.{name}: say why"
        assert (rule.kind == "section") == (field_type(field).words == "section" and not field_type(field).nullable)


def test_a_refusal_names_the_setting_both_values_the_reason_and_the_next_step() -> None:
    before = spec_of(agent={"algorithm": {"name": "ppo", "normalize_v_targets": True}})
    after = spec_of(agent={"algorithm": {"name": "ppo"}})
    assert told(before, after) == (
        "runs/a: agent.algorithm.normalize_v_targets cannot change in a forked run, from true to false: "
        "the critic's outputs are on this scale\n"
        "  try: leave it out, or start afresh: operant train runs/a/spec.json"
        " -s agent.algorithm.normalize_v_targets=false"
    )


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("agent.algorithm.symlog", {"agent": {"algorithm": {"symlog": True}}}, {}),
        ("agent.algorithm.n_step", algorithm(name="dqn"), algorithm(name="dqn", n_step=3)),
        ("agent.algorithm.name", {}, {"agent": {"algorithm": {"name": "a2c"}}}),
        ("agent.net.type", {}, {"agent": {"net": {"type": "gru"}}}),
        ("agent.net.optimizer.scheduler", {}, optimizer(scheduler={"name": "StepLR", "step_size": 3})),
        ("agent.net.optimizer.momentum", optimizer(name="sgd"), optimizer(name="sgd", momentum=0.9)),
        ("agent.algorithm.normalize_advantages", {}, {"agent": {"algorithm": {"normalize_advantages": "percentile"}}}),
        ("env.name", {}, {"env": {"name": "Acrobot-v1"}}),
        ("engine", {}, {"engine": "jax"}),
        ("meta.seed", {}, {"meta": {"seed": 1}}),
    ],
)  # fmt: skip
def test_what_a_checkpoint_was_made_from_cannot_change(path: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert f"{path} cannot change in a forked run" in told(spec_of(**old), spec_of(**new))
    assert f"{path} cannot change in a forked run" in told(spec_of(**new), spec_of(**old))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"agent": {"net": {"optimizer": {"lr": 1e-5}}}}),
        ({}, {"agent": {"algorithm": {"entropy_coef": {"start": 0.1, "end": 0.0, "frames": 10}}}}),
        ({}, {"agent": {"algorithm": {"normalize_advantages": "none"}}}),
        ({}, {"env": {"max_frame": 10**6}, "meta": {"log_frequency": 5}}),
        ({}, {"engine": "torch"}),
        (
            {"agent": {"net": {"optimizer": {"name": "sgd", "momentum": 0.5}}}},
            {"agent": {"net": {"optimizer": {"name": "sgd", "momentum": 0.9}}}},
        ),
    ],
)
def test_what_leaves_a_checkpoint_as_it_is_may_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    check_fork(spec_of(**old), spec_of(**new), "runs/a", "spec.json")


def test_what_widens_may_grow_and_not_shrink() -> None:
    def model(context: int) -> Spec:
        return spec_of(
            env={"name": "copy"}, agent={"algorithm": {"name": "grpo"}, "model": {"tiny": {"context": context}}}
        )

    check_fork(model(64), model(128), "runs/a", "spec.json")
    assert "agent.model.tiny.context cannot shrink in a forked run, from 128 to 64" in told(model(128), model(64))


def test_only_what_differs_is_a_change() -> None:
    assert changes(spec_of(), spec_of()) == []
    assert [each.path for each in changes(spec_of(), spec_of(env={"num_envs": 8}))] == ["env.num_envs"]
