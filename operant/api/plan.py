"""Plan a language run past one machine: the rates of a spec or run, simulated on machines that are stated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from operant.api.runs import open_trial
from operant.errors import UsageError
from operant.planning.outcome import losses
from operant.planning.plan import Plan
from operant.planning.splits import SplitSearch
from operant.planning.workload import Machines, Workload
from operant.run.rates import Rates

if TYPE_CHECKING:
    from operant.spec.schema import Spec
    from operant.spec.settings.language_algorithms import VerifiedAlgorithm

SPEC_PREFIX = "spec:"
SPREAD = 0.6
"""Standard deviation of the logarithm of lengths, where only their mean is stated."""
DRAWN = 4096
STATED_RATES = "--generate-tokens-per-second, --train-tokens-per-second, --mean-length and --weights state them"


@dataclass(frozen=True)
class StatedRates:
    """Rates that are stated in place of measured ones; None where they are not.

    `generate_tokens_per_second` is of one generator with all slots in use, `train_tokens_per_second` of one GPU.
    """

    generate_tokens_per_second: float | None = None
    decode_step_seconds: float | None = None
    train_tokens_per_second: float | None = None
    verify_seconds: float | None = None
    mean_length: float | None = None
    weight_bytes: int | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing has to be measured: what is not stated here has a value that is nearly nothing."""
        needed = self.generate_tokens_per_second, self.train_tokens_per_second, self.mean_length, self.weight_bytes
        return None not in needed

    def over(self, rates: Rates, slots: int, longest: int | None) -> Rates:
        """The rates with the stated ones in their place."""
        if self.mean_length is not None:
            rates = replace(rates, lengths=lengths_of_mean(self.mean_length, longest))
        if self.weight_bytes is not None:
            rates = replace(rates, weight_bytes=self.weight_bytes)
        if self.verify_seconds is not None:
            rates = replace(rates, verify_seconds=self.verify_seconds)
        if self.train_tokens_per_second is not None:
            rates = replace(rates, train_token_seconds=1 / self.train_tokens_per_second)
        if self.decode_step_seconds is None and self.generate_tokens_per_second is None:
            return rates
        step = rates.step_seconds if self.decode_step_seconds is None else self.decode_step_seconds
        return _with_decoding(rates, self.generate_tokens_per_second or rates.tokens_per_second(slots), step, slots)


def plan(
    target: str | Path,
    name: str | None = None,
    /,
    *,
    nodes: int = 1,
    gpus: int = 8,
    machines: Machines | None = None,
    trainers: int | None = None,
    generators: int | None = None,
    verifiers: int | None = None,
    generator_gpus: int | None = None,
    stated: StatedRates | None = None,
    overrides: Sequence[str] = (),
    root: str | Path = "runs",
    seed: int = 0,
) -> Plan:
    """Simulate a spec, or a run with the rates that it had, on `nodes` of `gpus` each: throughput, waits, costs.

    `machines` states more than their number. Roles that are not given are varied, and the best split comes first.
    """
    stated = stated or StatedRates()
    if nodes < 1 or gpus < 1:
        raise UsageError(f"{nodes} nodes of {gpus} GPUs are no machines", remedy="--nodes 1 --gpus 8, or more")
    machines = replace(machines or Machines(), nodes=nodes, gpus=gpus)
    asked = _target(str(target), name, overrides, root)
    spec, settings = asked.spec, _settings(asked.spec, str(target))
    workload = workload_of(spec, settings)
    rates, source, remarks = _rates(asked, stated, workload.slots)
    own = generator_gpus or max(1, round(spec.meta.ray.generator_gpus))
    roles = {"trainers": trainers, "generators": generators, "verifiers": verifiers, "generator_gpus": own}
    outcomes = SplitSearch(workload, rates, machines, **roles, seed=seed).run()
    found = Plan(spec.name, source, workload, rates, machines, outcomes, [], remarks)
    return replace(found, losses=losses(workload, rates, machines, found.chosen, seed))


def workload_of(spec: Spec, settings: VerifiedAlgorithm) -> Workload:
    """The rounds of a language spec."""
    assert spec.agent.model is not None
    return Workload(
        prompts=settings.batch_size // settings.group_size,
        group_size=settings.group_size,
        updates=settings.updates_per_round,
        staleness=settings.staleness,
        slots=spec.agent.model.slots,
        pass_tokens=settings.pass_tokens,
        resample_rounds=settings.resample_rounds if settings.zero_variance == "resample" else 0,
        save_rounds=max(1.0, min(spec.meta.save_frequency, spec.env.max_frame) / settings.batch_size),
        rounds=-(-spec.env.max_frame // settings.batch_size),
    )


def lengths_of_mean(mean: float, longest: int | None) -> tuple[int, ...]:
    """Lengths with that mean and a long tail: log-normal, and cut off at the longest, which has to be longer."""
    import numpy as np

    if longest is not None and mean > longest:
        raise UsageError(
            f"completions cannot have {mean:g} tokens on average where env.text.max_tokens is {longest}",
            place="--mean-length",
            remedy=f"-s env.text.max_tokens={math.ceil(2 * mean)}, or a smaller --mean-length",
        )
    drawn = np.random.default_rng(0).lognormal(0.0, SPREAD, DRAWN)
    most = max(longest or 2**31, 1)
    # What is cut off at the longest is made up for by the others, as far as there is room.
    low, high = 0.0, float(max(most, mean * 4))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(drawn * middle, most).mean() < mean else (low, middle)
    return tuple(int(each) for each in np.clip(np.rint(drawn * high), 1, most))


def _with_decoding(rates: Rates, tokens_per_second: float, step_seconds: float, slots: int) -> Rates:
    by_token = 1 / tokens_per_second - step_seconds / slots
    if by_token < 0:
        most = slots / step_seconds
        raise UsageError(
            f"{tokens_per_second:g} tokens per second are more than {slots} slots write in steps of {step_seconds:g} s,"
            f" which is {most:g}",
            remedy="more agent.model.slots, or shorter --decode-step-seconds",
        )
    return replace(rates, token_seconds=by_token, step_seconds=step_seconds)


def _rates(asked: _Target, stated: StatedRates, slots: int) -> tuple[Rates, str, list[str]]:
    """The rates, where they come from, and remarks."""
    spec, ran = asked.spec, asked.ran
    longest = None if spec.env.text is None else spec.env.text.max_tokens
    if stated.complete:
        bare = Rates(0.0, 0.0, 0.0, 0.0, lengths=(1,), weight_bytes=0)
        return stated.over(bare, slots, longest), "stated", []
    if ran is not None:
        from operant.planning.telemetry import read_rates

        generators = ran.meta.ray.generators if ran.meta.cluster == "ray" else ran.meta.processes
        verifiers = 1 if ran.env.text is None else ran.env.text.workers
        rates, remarks = read_rates(asked.sessions, slots, generators, verifiers)
        source = "this run's telemetry"
    else:
        from operant.api.specs import validate
        from operant.engines import engine_of, require_packages

        try:
            require_packages(spec)
            validate(spec, spec.name)
        except UsageError as refused:
            raise UsageError(
                f"rates cannot be measured here: {refused.cause}", place=refused.place, remedy=STATED_RATES
            ) from refused
        rates, remarks = engine_of(spec).measure_rates(spec)
        source = "a short measurement here"
    given = [each.name for each in fields(stated) if getattr(stated, each.name) is not None]
    if stated.decode_step_seconds is not None:
        remarks = []
    return stated.over(rates, slots, longest), source + (f", and stated: {', '.join(given)}" if given else ""), remarks


def _settings(spec: Spec, place: str) -> VerifiedAlgorithm:
    from operant.spec.settings.language_algorithms import VerifiedAlgorithm

    if isinstance(spec.agent.algorithm, VerifiedAlgorithm):
        return spec.agent.algorithm
    raise UsageError(
        f"{spec.agent.algorithm.name} has no generators and verifiers to plan; only language specs such as grpo have",
        place=place,
        remedy="operant check estimates it    (operant specs lists language specs)",
    )


@dataclass(frozen=True)
class _Target:
    """What is planned: a spec, and where it is that of a run, the spec and the sessions that rates come from."""

    spec: Spec
    ran: Spec | None = None
    sessions: tuple[Path, ...] = ()


def _target(target: str, name: str | None, overrides: Sequence[str], root: str | Path) -> _Target:
    """The spec or run that is named; where a run has the name of a spec, the run is meant."""
    from operant.spec.load import load, load_mapping

    plain = target.removeprefix(SPEC_PREFIX)
    if plain != target or name is not None or Path(target).is_file():
        return _Target(load(plain, name, list(overrides)).spec)
    try:
        trial = open_trial(target, root)
    except UsageError as no_run:
        if Path(target).exists() or (Path(root) / target).exists():
            raise no_run
        return _Target(load(target, name, list(overrides)).spec)
    ran = trial.sessions[0].spec
    changed = load_mapping(ran.model_dump(mode="json"), None, list(overrides)).spec if overrides else ran
    return _Target(changed, ran, tuple(session.path for session in trial.sessions))
