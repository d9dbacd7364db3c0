"""How a search is run: the sampler's help, the scheduler that stops trials early, and what one trial may use."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from operant.spec.fields import Closed, free

Sampler = Literal["tpe", "random", "grid", "cmaes"]
Factor = Annotated[float, Field(gt=0, le=1000)]


class SearchSchedulerSpec(Closed):
    """Early stopping in a search: trials pause at rungs, and the better ones are promoted by resuming their runs.

    With `pbt`, population-based training, the worst of a rung give their place to forks of the best.
    """

    name: Literal["asha", "median", "pbt"] = free(
        default="asha",
        description="`asha` promotes the best 1/reduction_factor of a rung; `median` those not below its median; "
        "`pbt` trains a population of meta.max_trial, and replaces its worst by perturbed forks of its best.",
    )
    grace_period: int = free(
        default=10_000,
        ge=1,
        le=10**12,
        description="Frames of the first rung, before which no trial is stopped; of median and pbt, of every rung "
        "(elsewhere called perturbation_interval).",
    )
    reduction_factor: int = free(
        default=3,
        ge=2,
        le=100,
        description="Of asha: one in so many trials is promoted, to so many times the frames.",
    )
    quantile_fraction: float = free(
        default=0.25,
        gt=0,
        le=0.5,
        description="Of pbt: the share of the population that is replaced at a rung, and the share that is forked.",
    )
    resample_probability: float = free(
        default=0.25,
        ge=0,
        le=1,
        description="Of pbt: how often a fork draws a setting anew from its distribution instead of perturbing it.",
    )
    perturbation_factors: tuple[Factor, ...] = free(
        default=(0.8, 1.2),
        min_length=1,
        max_length=100,
        description="Of pbt: a fork multiplies a number by one of these; a choice moves to a neighbor in its list.",
    )

    def rungs(self, max_frame: int) -> tuple[int, ...]:
        """The frames at which trials pause, ending with the whole budget.

        ASHA's grow by the reduction factor; the others' come every `grace_period` frames.
        """
        frames, found = self.grace_period, []
        while frames < max_frame:
            found.append(frames)
            frames = frames * self.reduction_factor if self.name == "asha" else frames + self.grace_period
        return (*found, max_frame)


class SearchResourcesSpec(Closed):
    """What one process of a search may use; the machine's cores and GPUs divided by it are the processes at once."""

    cpu: int = free(default=1, ge=1, le=4096, description="CPU cores of one process.")
    gpu: float = free(
        default=0.0, ge=0, le=64, description="GPUs of one process; 0.25 lets four share one, 0 hides none."
    )
    lanes: int | None = free(
        default=None,
        ge=1,
        le=4096,
        description="Trials that one process of the jax engine trains by one compiled program, where they differ in "
        "traced settings only (8 if not given); other engines train one trial in a process.",
    )
