"""A plan: what was simulated, from which rates, and what came of it, as numbers and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from operant.planning.outcome import HOUR, Loss, Outcome
from operant.planning.workload import Machines, Workload
from operant.run.rates import Rates

SHOWN = 8


@dataclass(frozen=True)
class Plan:
    """The splits that were simulated, best first, with what losing a node costs in the best that can be run."""

    name: str
    source: str
    workload: Workload
    rates: Rates
    machines: Machines
    outcomes: list[Outcome]
    losses: list[Loss]
    remarks: list[str]

    @property
    def best(self) -> Outcome:
        """The quickest split."""
        return self.outcomes[0]

    @property
    def best_supported(self) -> Outcome | None:
        """The quickest split that this version of Operant runs."""
        return next((outcome for outcome in self.outcomes if outcome.split.supported), None)

    @property
    def chosen(self) -> Outcome:
        """The split that costs are told of."""
        return self.best_supported or self.best

    def seconds(self, outcome: Outcome) -> float:
        """How long the whole run takes."""
        return self.workload.rounds * outcome.round_seconds

    def dollars(self, outcome: Outcome) -> float | None:
        """What all GPUs cost in that time."""
        price = self.machines.price
        return None if price is None else price * self.machines.all_gpus * self.seconds(outcome) / HOUR

    def as_dict(self) -> dict[str, Any]:
        """The numbers for `--json`."""
        facts = {name: value for name, value in vars(self.machines).items() if name != "cores"}
        rates = {name: value for name, value in vars(self.rates).items() if name != "lengths"}
        return {
            "spec": self.name,
            "rates_from": self.source,
            "rates": {**rates, "mean_length": self.rates.mean_length, "longest": max(self.rates.lengths)},
            "workload": vars(self.workload),
            "machines": {**facts, "cores": self.machines.cores if self.machines.cores < 1e9 else None},
            "best": self._numbers(self.best),
            "best_supported": None if self.best_supported is None else self._numbers(self.best_supported),
            "lost_node": [{**vars(loss), "dollars": loss.dollars(self.machines)} for loss in self.losses],
            "splits": [self._numbers(outcome) for outcome in self.outcomes],
            "remarks": self.remarks,
        }

    def _numbers(self, outcome: Outcome) -> dict[str, Any]:
        return {**outcome.as_dict(), "seconds": self.seconds(outcome), "dollars": self.dollars(outcome)}

    def table(self) -> list[str]:
        """The best splits, a line each; of more than a few the worst are left out, but for one that is supported."""
        rows = self.outcomes[:SHOWN]
        rows += [self.chosen] if self.chosen not in rows else []
        lines = ["trainers generators verifiers  samples/s    tokens/s  idle: train  generate  staleness"]
        for each in rows:
            split, idle = each.split, each.idle
            generators = "by turns" if split.colocated else f"{split.generators:,}"
            generating = "" if split.colocated else f"{idle['generators']:.0%}"
            lines.append(
                f"{split.trainers:>8,} {generators:>10} {split.verifiers:>9,} {each.rate_text:>10}"
                f" {each.tokens_per_second:>11,.0f} {idle['trainers']:>12.0%} {generating:>9}"
                f" {each.mean_staleness:>10.2f}{'' if split.supported else '   not yet'}"
            )
        return lines
