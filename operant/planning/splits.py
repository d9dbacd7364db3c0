"""Which split of GPUs between training and generating is best, and how many verifiers keep up with it."""

from __future__ import annotations

import math
from dataclasses import replace

from operant.errors import UsageError
from operant.planning.outcome import ROUNDS, Outcome, simulate
from operant.planning.workload import Machines, Split, Workload
from operant.run.rates import Rates

ENOUGH = 0.99
"""Fewer verifiers are taken as long as this share of the throughput remains."""
AMPLE = 0.02
"""So many verifiers are ample that they take this share of a round."""
MOST_VERIFIERS = 1024
REFINEMENTS = 3


class SplitSearch:
    """Simulates splits of the same machines (final); numbers that are given are not varied."""

    def __init__(
        self,
        workload: Workload,
        rates: Rates,
        machines: Machines,
        *,
        trainers: int | None = None,
        generators: int | None = None,
        verifiers: int | None = None,
        generator_gpus: int = 1,
        seed: int = 0,
        rounds: int = ROUNDS,
    ) -> None:
        self.workload, self.rates, self.machines = workload, rates, machines
        self.trainers, self.generators, self.verifiers = trainers, generators, verifiers
        self.generator_gpus, self.seed, self.rounds = generator_gpus, seed, rounds
        self._tried: dict[Split, Outcome] = {}

    def run(self) -> list[Outcome]:
        """Every split that was tried, best first; of the best one that is supported the verifiers are counted too."""
        for split in self._first():
            self._outcome(split)
        for _ in range(REFINEMENTS if self.trainers is None and self.generators is None else 0):
            for trainers in self._beside_best():
                self._outcome(self._split(trainers))
        if self.verifiers is None:
            # Ample verifiers were supposed, so that their number did not decide between the splits.
            supported = next((each for each in self._ranked() if each.split.supported), None)
            for best in {each.split: each for each in (self._ranked()[0], supported) if each is not None}.values():
                self._tried.pop(best.split)
                self._outcome(self._fewest_verifiers(best))
        return self._ranked()

    def _first(self) -> list[Split]:
        """Powers of two that train, and all who train and generate by turns; or the split that was asked for."""
        gpus = self.machines.all_gpus
        if self.trainers is not None or self.generators is not None:
            return [self._asked()]
        most = gpus - self.generator_gpus
        numbers = {2**power for power in range(gpus.bit_length())} | {most}
        apart = [self._split(trainers) for trainers in sorted(numbers) if 1 <= trainers <= most]
        return [*apart, Split(gpus, 0, self._verifiers())]

    def _asked(self) -> Split:
        gpus, own = self.machines.all_gpus, self.generator_gpus
        generators = self.generators if self.generators is not None else (gpus - (self.trainers or 1)) // own
        trainers = self.trainers if self.trainers is not None else (gpus - generators * own if generators == 0 else 1)
        if trainers < 1 or generators < 0 or trainers + generators * own > gpus:
            asked = f"{trainers} trainers" + (f" and {generators} generators of {own} GPUs" if generators > 0 else "")
            raise UsageError(f"{asked} do not fit {gpus} GPUs", remedy="--nodes and --gpus say how many there are")
        return Split(trainers, generators, self._verifiers(), own)

    def _split(self, trainers: int) -> Split:
        """So many train, and all other GPUs generate."""
        others = (self.machines.all_gpus - trainers) // self.generator_gpus
        return Split(trainers, others, self._verifiers(), self.generator_gpus)

    def _beside_best(self) -> list[int]:
        """Numbers of trainers halfway between the best one and those that were tried beside it."""
        apart = [outcome for outcome in self._ranked() if not outcome.split.colocated]
        if not apart:
            return []
        best, tried = apart[0].split.trainers, sorted(each.split.trainers for each in apart)
        at = tried.index(best)
        return [(best + other) // 2 for other in tried[max(0, at - 1) : at + 2] if abs(best - other) > 1]

    def _verifiers(self) -> int:
        """Those that were asked for, or ample ones: with them verification is a small share of the quickest round."""
        if self.verifiers is not None:
            return self.verifiers
        answers, rates = self.workload.prompts * self.workload.group_size, self.rates
        tokens = answers * rates.mean_length
        quickest = tokens * max(rates.token_seconds, rates.train_token_seconds) / self.machines.all_gpus
        least = max(quickest, max(rates.lengths) * rates.step_seconds, 1e-9)
        wanted = answers * rates.verify_seconds / (AMPLE * least)
        return min(2 ** math.ceil(math.log2(max(wanted, 1.0))), answers, MOST_VERIFIERS)

    def _fewest_verifiers(self, best: Outcome) -> Split:
        """The split with a power of two of verifiers that keeps up, sought upwards from those that were busy."""
        busy = best.split.verifiers * best.use["verifiers"].get("verify", 0.0)
        count = 2 ** math.ceil(math.log2(max(busy, 1.0)))
        while count < best.split.verifiers:
            split = replace(best.split, verifiers=count)
            if self._simulated(split).samples_per_second >= ENOUGH * best.samples_per_second:
                return split
            count *= 2
        return best.split

    def _outcome(self, split: Split) -> None:
        if split not in self._tried:
            self._tried[split] = self._simulated(split)

    def _simulated(self, split: Split) -> Outcome:
        return simulate(self.workload, self.rates, self.machines, split, self.seed, self.rounds)

    def _ranked(self) -> list[Outcome]:
        return sorted(self._tried.values(), key=lambda outcome: -outcome.samples_per_second)
