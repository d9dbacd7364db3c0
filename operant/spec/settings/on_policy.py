"""Settings of A2C, REINFORCE, SARSA and of random play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from operant.spec.fields import fixed, free
from operant.spec.registry import in_engines
from operant.spec.schedules import Schedule, Scheduled
from operant.spec.settings.algorithm import Algorithm, ExploringAlgorithm, algorithm_name
from operant.spec.settings.nets import Units


def _scale_of_switch(value: Any) -> Any:
    """True and false, as an older spec has them, in today's words."""
    return ("standardise" if value else "none") if isinstance(value, bool) else value


Scaling = Literal["none", "standardise", "percentile"]
AdvantageScale = Annotated[Scaling, BeforeValidator(_scale_of_switch, json_schema_input_type=bool | Scaling)]


ValueLoss = Literal["mse", "huber"]
UNEVEN = "whole episodes differ in length"


class EpisodicAlgorithm(Algorithm):
    """The base of algorithms that learn from a number of steps, or from whole episodes (abstract).

    `STEPS` is the setting that says how many steps of each environment make an update.
    """

    STEPS: ClassVar[str] = "training_frequency"

    training_episodes: int | None = free(
        default=None,
        ge=1,
        le=1_000_000,
        description="Whole episodes per update, a multiple of num_envs, instead of a number of steps.",
    )

    def recompiles(self) -> str:
        return super().recompiles() or (UNEVEN if self.training_episodes else "")

    def inert(self) -> Mapping[str, str]:
        counted = (
            {} if self.training_episodes is None else {f"agent.algorithm.{self.STEPS}": "training_episodes is set"}
        )
        return {**super().inert(), **counted}


class AdvantageAlgorithm(EpisodicAlgorithm):
    """The base of algorithms that learn from advantages, one gradient step per rollout (abstract)."""

    TAKES_MASKS = ("torch",)
    TAKES_SEQUENCES = True

    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    lam: float = free(default=0.95, ge=0, le=1, description="Lambda of generalised advantage estimation.")
    num_step_returns: int | None = free(
        default=None,
        ge=1,
        le=1_000_000,
        description="Rewards summed before the bootstrap, instead of `lam`; fewer where a rollout or an episode ends.",
    )
    training_frequency: int = free(default=32, ge=1, le=1_000_000, description="Steps of each environment per update.")
    entropy_coef: Annotated[Schedule, Scheduled(ge=0, le=10)] = free(
        default=0.01, description="Weight of the entropy bonus."
    )
    val_loss_coef: float = free(default=0.5, ge=0, le=100, description="Weight of the value loss.")
    val_loss: ValueLoss = free(default="mse", description="Loss of the critic's error.")
    normalize_advantages: bool = free(default=False, description="Standardise advantages within each update.")
    normalize_v_targets: bool = fixed(
        "the critic's outputs are on this scale",
        default=False,
        description="The critic learns returns standardised by their running mean and deviation.",
    )
    critic_hidden: tuple[Units, ...] | None = fixed(
        "the weights have the shape of the network",
        default=None,
        max_length=16,
        description="Units of the critic's hidden layers; null for those of `net.hidden`.",
    )

    def inert(self) -> Mapping[str, str]:
        n_step = {} if self.num_step_returns is None else {"agent.algorithm.lam": "num_step_returns is set"}
        return {**super().inert(), "agent.net.duelling": f"{self.name} has no Q-network", **n_step}


class A2cSpec(AdvantageAlgorithm):
    """Advantage actor-critic, synchronous (Mnih et al., 2016)."""

    LEARNERS = in_engines(torch="a2c:A2c")
    SHARES_PROCESSES = True

    name: Literal["a2c"] = algorithm_name("a2c")


class ReinforceSpec(Algorithm):
    """Monte-Carlo policy gradient from whole episodes, or from a number of steps, without a critic (Williams, 1992)."""

    LEARNERS = in_engines(torch="reinforce:Reinforce")
    TAKES_MASKS = ("torch",)
    RECOMPILES = "the batches of reinforce differ in size"

    name: Literal["reinforce"] = algorithm_name("reinforce")
    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    training_frequency: int = free(
        default=4, ge=1, le=1_000_000, description="Whole episodes per update; a multiple of num_envs."
    )
    time_horizon: int | None = free(
        default=None,
        ge=1,
        le=1_000_000,
        description="Steps of each environment per update, instead of whole episodes: returns are cut there.",
    )
    elite_fraction: float = free(
        default=1.0,
        gt=0,
        le=1,
        description="Share of an update's episodes that is learnt from, the best by their sum of rewards (cross-entropy"
        " method).",
    )
    normalize_returns: Literal["none", "centre", "standardise"] = free(
        default="standardise", description="Returns of an update less their mean, also over their deviation, or as is."
    )
    entropy_coef: Annotated[Schedule, Scheduled(ge=0, le=10)] = free(
        default=0.01, description="Weight of the entropy bonus."
    )

    def inert(self) -> Mapping[str, str]:
        names = () if self.time_horizon is None else ("training_frequency", "elite_fraction")
        return {
            **{f"agent.algorithm.{name}": "time_horizon is set" for name in names},
            "env.normalize_reward": "reinforce scales whole returns: normalize_returns",
            "agent.net.shared": "reinforce has no critic",
            "agent.net.critic_gain": "reinforce has no critic",
            "agent.net.duelling": "reinforce has no Q-network",
            "agent.net.optimizer.critic_lr": "reinforce has no critic",
            "agent.net.optimizer.clip_each": "reinforce has no critic",
        }


class SarsaSpec(EpisodicAlgorithm, ExploringAlgorithm):
    """On-policy temporal differences of action values (Rummery and Niranjan, 1994)."""

    LEARNERS = in_engines(torch="sarsa:Sarsa")
    ACTIONS = "discrete"
    TAKES_MASKS = ("torch",)
    RECOMPILES = "the batches of sarsa differ in size"

    name: Literal["sarsa"] = algorithm_name("sarsa")
    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    loss: Literal["huber", "mse"] = free(default="huber", description="Loss of the temporal-difference error.")
    training_frequency: int = free(default=32, ge=1, le=1_000_000, description="Steps of each environment per update.")

    def inert(self) -> Mapping[str, str]:
        return {
            **super().inert(),
            "agent.net.shared": "sarsa has no critic",
            "agent.net.actor_gain": "sarsa has no actor",
            "agent.net.optimizer.critic_lr": "sarsa has no critic",
            "agent.net.optimizer.clip_each": "sarsa has no critic",
            "agent.net.log_std_init": "sarsa has no continuous actions",
            **self.idle_exploration(),
        }


class RandomSpec(Algorithm):
    """Uniformly random play, which learns nothing: the baseline of every other algorithm."""

    LEARNERS = in_engines(torch="random:Random")
    TAKES_MASKS = ("torch",)

    name: Literal["random"] = algorithm_name("random")

    def inert(self) -> Mapping[str, str]:
        return {
            "env.normalize_obs": "random does not look",
            "env.normalize_reward": "random learns from no reward",
            "env.clip_reward": "random learns from no reward",
            "meta.compile": "random has no network",
            "meta.precision": "random has no network",
        }
