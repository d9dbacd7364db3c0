"""What a person may say about the off-policy actor-critic algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from operant.spec.algorithm import Algorithm
from operant.spec.fields import Schedule, Scheduled
from operant.spec.misfit import Misfit, replay_misfits, round_misfits

if TYPE_CHECKING:
    from operant.spec.schema import Spec


class SacSpec(Algorithm):
    """Soft actor-critic (Haarnoja et al., 2018), for bounded continuous and for discrete actions."""

    ENGINE = "deep"
    RESUME = "exact"
    USES_MEMORY = True

    name: Literal["sac"] = Field(default="sac", description="Algorithm.")
    gamma: float = Field(default=0.99, ge=0, le=1, description="Discount of future reward.")
    polyak: float = Field(
        default=0.005, gt=0, le=1, description="Share of the critics that their targets take at every gradient step."
    )
    learn_temperature: bool = Field(
        default=True, description="Learn the temperature so that the policy's entropy meets its target."
    )
    temperature: float = Field(
        default=1.0, gt=0, le=1e6, description="Weight of the entropy: at the start, or always when it is not learnt."
    )
    entropy_scale: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="Scales the target entropy: -(action dimensions), or 0.98 log(actions) when they are discrete.",
    )
    training_start: int = Field(
        default=1000, ge=1, le=10**12, description="Frames of uniformly random play before the first gradient step."
    )
    training_frequency: int = Field(
        default=4, ge=1, le=10**12, description="Frames between rounds of gradient steps; a multiple of num_envs."
    )
    training_iter: int = Field(default=4, ge=1, le=10_000, description="Gradient steps in one round.")

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        return [*round_misfits(spec, self), *replay_misfits(spec, self)]

    def inert(self) -> Mapping[str, str]:
        fixed = {"agent.algorithm.entropy_scale": "learn_temperature is false"}
        return {
            "agent.net.shared": "sac's actor and critics are apart",
            "agent.net.duelling": "sac has no duelling heads",
            "agent.net.optimizer.clip_each": "sac's actor and critics have optimisers of their own",
            "agent.net.log_std_init": "sac's network gives the deviation",
            **({} if self.learn_temperature else fixed),
        }


class Td3Spec(Algorithm):
    """Twin delayed deterministic policy gradient (Fujimoto et al., 2018), for bounded continuous actions."""

    ENGINE = "deep"
    RESUME = "exact"
    USES_MEMORY = True

    name: Literal["td3"] = Field(default="td3", description="Algorithm.")
    gamma: float = Field(default=0.99, ge=0, le=1, description="Discount of future reward.")
    polyak: float = Field(
        default=0.005, gt=0, le=1, description="Share of the nets that their targets take at every policy update."
    )
    policy_delay: int = Field(
        default=2, ge=1, le=10_000, description="Gradient steps of the critics per policy update."
    )
    exploration_noise: Annotated[Schedule, Scheduled(ge=0, le=10)] = Field(
        default=0.1, description="Deviation of the noise added to actions in play, of a range from -1 to 1."
    )
    target_noise: float = Field(
        default=0.2, ge=0, le=10, description="Deviation of the noise that smooths the target policy's actions."
    )
    target_noise_clip: float = Field(default=0.5, ge=0, le=10, description="Limit of that noise.")
    training_start: int = Field(
        default=1000, ge=1, le=10**12, description="Frames of uniformly random play before the first gradient step."
    )
    training_frequency: int = Field(
        default=4, ge=1, le=10**12, description="Frames between rounds of gradient steps; a multiple of num_envs."
    )
    training_iter: int = Field(default=4, ge=1, le=10_000, description="Gradient steps in one round.")

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        return [*round_misfits(spec, self), *replay_misfits(spec, self)]

    def inert(self) -> Mapping[str, str]:
        unsmoothed = {"agent.algorithm.target_noise_clip": "target_noise is 0"}
        return {
            "agent.net.shared": "td3's actor and critics are apart",
            "agent.net.duelling": "td3 has no duelling heads",
            "agent.net.optimizer.clip_each": "td3's actor and critics have optimisers of their own",
            "agent.net.log_std_init": "td3's policy is deterministic",
            **({} if self.target_noise else unsmoothed),
        }
