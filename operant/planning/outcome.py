"""What a simulation comes to: throughput, who waits how long, staleness, and what a lost machine costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from operant.planning.simulation import GENERATORS, TRAINERS, VERIFIERS, Record, TrainingSimulation
from operant.planning.workload import Machines, Split, Workload
from operant.run.rates import Rates

ROUNDS = 12
HOUR = 3600.0


@dataclass(frozen=True)
class Outcome:
    """Throughput and use of a split once it has got going; `use` has each part's share of time by activity.

    `staleness` counts updates between the weights that wrote a completion and those that learn from it; `dropped` is
    the share of groups that were written for nothing, as too old.
    """

    split: Split
    staleness_limit: int
    round_seconds: float
    first_round_seconds: float
    samples_per_second: float
    tokens_per_second: float
    use: dict[str, dict[str, float]]
    mean_staleness: float
    most_staleness: int
    dropped: float

    @property
    def idle(self) -> dict[str, float]:
        """The share of time in which each part does nothing."""
        return {part: max(0.0, 1.0 - sum(shares.values())) for part, shares in self.use.items()}

    @property
    def rate_text(self) -> str:
        """Samples per second as they are shown: four digits, or all before the point."""
        return f"{self.samples_per_second:{',.0f' if self.samples_per_second >= 1000 else '.4g'}}"

    def as_dict(self) -> dict[str, Any]:
        """The numbers for `--json`."""
        own = {name: value for name, value in vars(self).items() if name != "split"}
        return {**vars(self.split), "supported": self.split.supported, **own, "idle": self.idle}


@dataclass(frozen=True)
class Loss:
    """What the loss of one node costs: seconds by which the run ends later, and prompts that are written again."""

    node: str
    seconds: float
    redone: int = 0

    def dollars(self, machines: Machines) -> float | None:
        """What all GPUs cost in that time."""
        return None if machines.price is None else machines.price * machines.all_gpus * self.seconds / HOUR


def simulate(
    workload: Workload, rates: Rates, machines: Machines, split: Split, seed: int = 0, rounds: int = ROUNDS
) -> Outcome:
    """Simulate a split for so many rounds, of which the first third is not counted."""
    record = TrainingSimulation(workload, rates, machines, split, seed).run(rounds)
    staleness = 0 if split.colocated else workload.staleness
    return summarize(record, split, staleness, first=rounds // 3)


def summarize(record: Record, split: Split, staleness_limit: int, first: int) -> Outcome:
    """What happened after round `first`."""
    seconds = record.ends[-1] - record.ends[first]
    ages = [age for each in record.ages[first + 1 :] for age in each]
    learnt = sum(len(each) for each in record.ages)
    devices = {TRAINERS: split.trainers, GENERATORS: split.generators, VERIFIERS: split.verifiers}
    use: dict[str, dict[str, float]] = {part: {} for part, count in devices.items() if count}
    for (part, activity), total in record.busy[-1].items():
        spent = total - record.busy[first].get((part, activity), 0.0)
        if part in use and spent > 0:
            use[part][activity] = spent / seconds / devices[part]
    return Outcome(
        split=split,
        staleness_limit=staleness_limit,
        round_seconds=seconds / (len(record.ends) - 1 - first),
        first_round_seconds=record.ends[0],
        samples_per_second=sum(record.samples[first + 1 :]) / seconds,
        tokens_per_second=sum(record.tokens[first + 1 :]) / seconds,
        use=use,
        mean_staleness=float(np.mean(ages)),
        most_staleness=max(ages),
        dropped=record.stale / (record.stale + learnt),
    )


def losses(workload: Workload, rates: Rates, machines: Machines, outcome: Outcome, seed: int = 0) -> list[Loss]:
    """What it costs to lose a node of trainers, and one that has generators only.

    Generators begin again what they had in hand. A trainer goes back to its last checkpoint, on average half of what
    lies between two of them, and waits for its first round as at the start.
    """
    split, step = outcome.split, outcome.round_seconds
    waits = max(0.0, outcome.first_round_seconds - step)
    found = [Loss("trainer", machines.restart_seconds + workload.save_rounds / 2 * step + waits)]
    node = split.node_of(split.generators - 1, machines.gpus)
    if not split.colocated and node > (split.trainers - 1) // machines.gpus:
        found.append(_generator_loss(workload, rates, machines, outcome, node, seed))
    return found


def _generator_loss(
    workload: Workload, rates: Rates, machines: Machines, outcome: Outcome, node: int, seed: int
) -> Loss:
    """The same run with and without the loss, until the node is back.

    Where that would be too many rounds to simulate, the rest of the time costs as much as the part that was simulated.
    """
    after = int(2 * machines.restart_seconds / outcome.round_seconds)
    rounds = min(ROUNDS + after, 10 * ROUNDS)
    at = outcome.first_round_seconds + outcome.round_seconds * (ROUNDS // 3 + 0.5)
    whole = TrainingSimulation(workload, rates, machines, outcome.split, seed).run(rounds)
    cut = TrainingSimulation(workload, rates, machines, outcome.split, seed, at, node).run(rounds)
    part = min(1.0, (cut.ends[-1] - at) / machines.restart_seconds) if machines.restart_seconds else 1.0
    return Loss("generator", max(0.0, cut.ends[-1] - whole.ends[-1]) / part, cut.redone)
