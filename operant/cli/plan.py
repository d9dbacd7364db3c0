"""`operant plan`: a language run on many machines, simulated."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from operant.cli.completers import complete_spec
from operant.cli.options import DEFAULT_ROOT, AsJson, Overrides, Root, SpecName
from operant.cli.output import document, say, size
from operant.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from operant.planning.outcome import Outcome
    from operant.planning.plan import Plan

PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(b|B)(/s)?")
Planned = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="A run, whose telemetry gives the rates, or a language spec (spec:NAME where a run has the name).",
        autocompletion=complete_spec,
        show_default=False,
    ),
]


def _option(name: str, metavar: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


Number = float | None


def plan(
    target: Planned,
    name: SpecName = None,
    nodes: Annotated[int, typer.Option("--nodes", metavar="N", help="Machines.")] = 1,
    gpus: Annotated[int, typer.Option("--gpus", metavar="N", help="GPUs of each.")] = 8,
    trainers: Annotated[int | None, _option("--trainers", "N", "GPUs that train; varied if not said.")] = None,
    generators: Annotated[
        int | None, _option("--generators", "N", "Generators; 0 for trainers that take turns.")
    ] = None,
    verifiers: Annotated[int | None, _option("--verifiers", "N", "Processes that verify answers.")] = None,
    generator_gpus: Annotated[int | None, _option("--generator-gpus", "N", "GPUs of one generator.")] = None,
    bandwidth: Annotated[str, typer.Option("--bandwidth", metavar="RATE", help="Of a node's network.")] = "400Gb/s",
    gpu_bandwidth: Annotated[
        str, typer.Option("--gpu-bandwidth", metavar="RATE", help="Between GPUs of one node.")
    ] = "3600Gb/s",
    price: Annotated[float | None, _option("--price", "DOLLARS", "What an hour of a GPU costs.")] = None,
    restart: Annotated[
        float, typer.Option("--restart-seconds", metavar="S", help="Until a lost node is replaced.")
    ] = 300.0,
    cores: Annotated[float | None, _option("--cores", "N", "Cores that all parts share, on one machine.")] = None,
    background: Annotated[
        float, typer.Option("--background", metavar="N", help="Threads of other programs that share those cores.")
    ] = 0.0,
    generate_rate: Annotated[
        Number, _option("--generate-tokens-per-second", "N", "Of one generator, all slots in use.")
    ] = None,
    step: Annotated[Number, _option("--decode-step-seconds", "S", "Of one more token of a single completion.")] = None,
    train_rate: Annotated[
        Number, _option("--train-tokens-per-second", "N", "Completion tokens that one GPU learns from.")
    ] = None,
    verify: Annotated[Number, _option("--verify-seconds", "S", "Of a verifier, for one answer.")] = None,
    mean_length: Annotated[Number, _option("--mean-length", "N", "Tokens of a completion, with a long tail.")] = None,
    weights: Annotated[str | None, _option("--weights", "BYTES", "Of the weights that are sent, such as 15GB.")] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the lengths that are drawn.")] = 0,
    overrides: Overrides = None,
    root: Root = Path(DEFAULT_ROOT),
    as_json: AsJson = False,
) -> int:
    """Simulate a language run on many machines: throughput, who waits, staleness, cost, the best split of roles.

    Rates come from a run's telemetry, from a short measurement of a spec here, or are stated.

    \b
      operant plan grpo_smollm2_largest --nodes 64 --gpus 8 --price 3
      operant plan my_run --nodes 4 -s agent.algorithm.staleness=4
      operant plan big.yaml --nodes 64 --generate-tokens-per-second 8000 --decode-step-seconds 0.02 \\
          --train-tokens-per-second 12000 --mean-length 3000 --weights 15GB
    """
    from operant.api.plan import StatedRates
    from operant.api.plan import plan as make_plan
    from operant.planning.workload import Machines

    more_than_0 = {
        "--nodes": nodes,
        "--gpus": gpus,
        "--trainers": trainers,
        "--verifiers": verifiers,
        "--generator-gpus": generator_gpus,
        "--cores": cores,
        "--generate-tokens-per-second": generate_rate,
        "--train-tokens-per-second": train_rate,
        "--mean-length": mean_length,
    }
    at_least_0 = {
        "--generators": generators,
        "--background": background,
        "--price": price,
        "--restart-seconds": restart,
        "--decode-step-seconds": step,
        "--verify-seconds": verify,
    }
    _check_numbers(more_than_0, at_least_0)
    weight_bytes = None if weights is None else int(quantity(weights, "--weights", rate=False))
    found = make_plan(
        target,
        name,
        nodes=nodes,
        gpus=gpus,
        machines=Machines(
            bandwidth=quantity(bandwidth, "--bandwidth", rate=True),
            gpu_bandwidth=quantity(gpu_bandwidth, "--gpu-bandwidth", rate=True),
            cores=math.inf if cores is None else cores,
            background=background,
            restart_seconds=restart,
            price=price,
        ),
        trainers=trainers,
        generators=generators,
        verifiers=verifiers,
        generator_gpus=generator_gpus,
        stated=StatedRates(generate_rate, step, train_rate, verify, mean_length, weight_bytes),
        overrides=overrides or [],
        root=root,
        seed=seed,
    )
    if as_json:
        document({**found.as_dict(), "exit": EXIT_DONE})
    else:
        say(*plan_lines(found))
    return EXIT_DONE


def quantity(text: str, option: str, rate: bool) -> float:
    """Bytes, or bytes per second: `400Gb/s` are bits, `50GB/s` and `15GB` bytes."""
    found = QUANTITY.fullmatch(text.strip())
    if found is None or bool(found[4]) != rate or float(found[1]) == 0:
        example = "400Gb/s or 50GB/s" if rate else "15GB"
        raise UsageError(f"{option}: {text!r} is no {'bandwidth' if rate else 'size'}", remedy=f"{option} {example}")
    return float(found[1]) * PREFIXES[found[2]] / (8 if found[3] == "b" else 1)


def _check_numbers(more_than_0: dict[str, float | None], at_least_0: dict[str, float | None]) -> None:
    for option, value in (more_than_0 | at_least_0).items():
        zero = option in at_least_0 and value == 0
        if value is not None and not zero and not 0 < value < math.inf:
            wanted = "0 or more" if option in at_least_0 else "more than 0"
            raise UsageError(f"{option} is {value:g}; it must be {wanted}", remedy="operant plan --help")


def plan_lines(found: Plan) -> list[str]:
    """The plan for people: what was supposed, the splits, and the best one in full."""
    workload, rates, machines = found.workload, found.rates, found.machines
    best, chosen = found.best, found.chosen
    lines = [
        f"{found.name} on {machines.nodes:,} x {machines.gpus} GPUs, simulated; rates: {found.source}",
        f"  a generator writes {rates.tokens_per_second(workload.slots):,.0f} tokens/s in {workload.slots:,} slots"
        f" ({rates.step_seconds:.3g} s a step at least)",
        f"  a GPU trains {_per_second(rates.train_token_seconds)} tokens/s;"
        f" a verdict takes {rates.verify_seconds:.3g} s",
        f"  completions of {rates.mean_length:,.0f} tokens on average, {max(rates.lengths):,} at most;"
        f" {size(rates.weight_bytes)} of weights",
        f"  a round: {workload.prompts:,} prompts x {workload.group_size}, {workload.updates} updates,"
        f" staleness at most {workload.staleness}",
        *(f"  note: {remark}" for remark in found.remarks),
        "",
        *(f"  {line}" for line in found.table()),
        "",
        *_split_lines(found, chosen),
    ]
    if not best.split.supported:
        lines += [
            f"best split of all: {best.split}: {best.rate_text} samples/s",
            '  "not yet": in this version several processes that train one model have no generators beside them',
        ]
    return lines


def _split_lines(found: Plan, outcome: Outcome) -> list[str]:
    """One split in full."""
    from operant.report.cost import money
    from operant.report.formatting import duration

    split, dollars = outcome.split, found.dollars(outcome)
    paid = "" if dollars is None else f", {money(dollars)}"
    lines = [
        f"best split{'' if found.best is outcome else ' that this version runs'}: {split}",
        f"  {outcome.rate_text} samples/s, {outcome.tokens_per_second:,.0f} tokens/s;"
        f" a round takes {duration(outcome.round_seconds)}, the run {duration(found.seconds(outcome))}{paid}",
    ]
    for part, shares in outcome.use.items():
        busy = ", ".join(f"{activity} {share:.1%}" for activity, share in sorted(shares.items(), key=lambda it: -it[1]))
        lines.append(f"  {part}: idle {outcome.idle[part]:.1%}{f'; {busy}' if busy else ''}")
    lines.append(
        f"  staleness {outcome.mean_staleness:.2f} on average, {outcome.most_staleness} at most;"
        f" {outcome.dropped:.1%} of groups too old"
    )
    for loss in found.losses:
        cost = loss.dollars(found.machines)
        redone = f", {loss.redone:,} prompts written again" if loss.redone else ""
        lines.append(
            f"  a lost {loss.node} node: {duration(loss.seconds)}{'' if cost is None else f', {money(cost)}'}{redone}"
        )
    if split.supported:
        words = " ".join(f"-s {setting}" for setting in split.settings(found.workload.staleness))
        lines.append(f"  settings: {words}")
    return lines


def _per_second(seconds: float) -> str:
    return f"{1 / seconds:,.0f}" if seconds else "any number of"
