"""Settings of the off-policy algorithms: DQN, SAC, CrossQ and TD3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from operant.spec.fields import fixed, free
from operant.spec.registry import in_engines
from operant.spec.schedules import Schedule, Scheduled
from operant.spec.settings.algorithm import Algorithm, ExploringAlgorithm, algorithm_name
from operant.spec.settings.nets import Units

TdLoss = Literal["huber", "mse"]


class DqnSpec(ExploringAlgorithm):
    """Deep Q-learning (Mnih et al., 2015), with the Double (van Hasselt et al., 2016) target, of means or quantiles."""

    LEARNERS = in_engines(torch="dqn:Dqn", jax="dqn:Dqn")
    USES_MEMORY = True
    ACTIONS = "discrete"
    TAKES_MASKS = ("torch",)

    name: Literal["dqn"] = algorithm_name("dqn")
    double: bool = free(default=True, description="Select with the online net and evaluate with the target net.")
    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    n_step: int = fixed(
        "the transitions in the replay look so many steps ahead",
        default=1,
        ge=1,
        le=1000,
        description="Steps of reward in a target before it bootstraps; fewer at episode ends.",
    )
    distributional: Literal["none", "qr"] = fixed(
        "the network's outputs are means, or quantiles",
        default="none",
        description="Learn the mean of returns, or by quantile regression their whole distribution.",
    )
    quantiles: int = fixed(
        "the network has so many outputs",
        default=51,
        ge=2,
        le=10_000,
        description="Quantiles of each action's return, with `qr`.",
    )
    loss: TdLoss = free(default="huber", description="Loss of the temporal-difference error.")
    training_start: int = free(default=1000, ge=1, le=10**12, description="Frames before the first gradient step.")
    training_frequency: int = free(
        default=4,
        ge=1,
        le=10**12,
        description="Frames between rounds of gradient steps, at least num_envs. Where it is no multiple of that, a"
        " round comes with the step that reaches the next multiple of training_frequency.",
    )
    training_iter: int = free(default=1, ge=1, le=10_000, description="Gradient steps in one round.")
    target_update: int = free(
        default=500, ge=1, le=10**12, description="Frames between copies to the target net (with `polyak` 1)."
    )
    polyak: float = free(
        default=1.0,
        ge=0,
        le=1,
        description="1 copies the net every `target_update` frames; below 1 blends at every round; 0 leaves the target"
        " net as it began.",
    )

    def fixed_in_fork(self) -> Mapping[str, str]:
        return {"gamma": "the rewards in the replay are discounted by it"} if self.n_step > 1 else {}

    def inert(self) -> Mapping[str, str]:
        blends = {"agent.algorithm.target_update": "polyak is below 1"} if self.polyak < 1 else {}
        mean = {"agent.algorithm.quantiles": "distributional is none"}
        spread = {"agent.algorithm.loss": "distributional qr has a loss of its own"}
        return {
            "agent.net.shared": "dqn has no critic",
            "agent.net.actor_gain": "dqn has no actor",
            "agent.net.optimizer.critic_lr": "dqn has no critic",
            "agent.net.optimizer.clip_each": "dqn has no critic",
            "agent.net.log_std_init": "dqn has no continuous actions",
            **self.idle_exploration(),
            **blends,
            **(mean if self.distributional == "none" else spread),
        }


class TwinAlgorithm(Algorithm):
    """The base of algorithms with a policy and twin critics that learn from replay (abstract)."""

    USES_MEMORY = True
    NEEDS_BOUNDS = True

    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    training_start: int = free(
        default=1000, ge=1, le=10**12, description="Frames of uniformly random play before the first gradient step."
    )
    training_frequency: int = free(
        default=4,
        ge=1,
        le=10**12,
        description="Frames between rounds of gradient steps, at least num_envs. Where it is no multiple of that, a"
        " round comes with the step that reaches the next multiple of training_frequency.",
    )
    training_iter: int = free(default=4, ge=1, le=10_000, description="Gradient steps in one round.")
    loss: TdLoss = free(default="mse", description="Loss of the critics' temporal-difference errors.")
    critic_hidden: tuple[Units, ...] | None = fixed(
        "the weights have the shape of the network",
        default=None,
        max_length=16,
        description="Units of the critics' hidden layers; null for those of `net.hidden`.",
    )

    def inert(self) -> Mapping[str, str]:
        name = self.name
        return {
            "agent.net.shared": f"{name}'s actor and critics are apart",
            "agent.net.duelling": f"{name} has no duelling heads",
            "agent.net.optimizer.clip_each": f"{name}'s actor and critics have optimisers of their own",
        }


class SoftAlgorithm(TwinAlgorithm):
    """The base of algorithms whose policy is rewarded for its entropy (abstract)."""

    critic_reduction: Literal["min", "mean"] = free(
        default="min",
        description="How the values of the two critics become one, for targets and policy; mean suits some discrete"
        " problems, where the smaller value holds learning back (Zhou et al., 2022).",
    )
    learn_temperature: bool = free(
        default=True, description="Learn the temperature so that the policy's entropy meets its target."
    )
    temperature: float = fixed(
        "it is kept with the weights",
        default=1.0,
        gt=0,
        le=1e6,
        description="Weight of the entropy: at the start, or always when it is not learnt.",
    )
    temperature_min: float | None = free(
        default=None, gt=0, le=1e6, description="Least temperature that is learnt; null for any."
    )
    temperature_max: float | None = free(
        default=None, gt=0, le=1e6, description="Largest temperature that is learnt; null for any."
    )
    entropy_scale: float = free(
        default=1.0,
        ge=0,
        le=100,
        description="Scales the target entropy: -(action dimensions), or `discrete_entropy` x log(actions).",
    )
    discrete_entropy: float = free(
        default=0.98, gt=0, le=1, description="Target entropy of discrete actions, as a part of the largest there is."
    )

    def inert(self) -> Mapping[str, str]:
        reason = "learn_temperature is false"
        names = ("entropy_scale", "discrete_entropy", "temperature_min", "temperature_max")
        return {
            **super().inert(),
            "agent.net.log_std_init": f"{self.name}'s network gives the deviation",
            **({} if self.learn_temperature else {f"agent.algorithm.{name}": reason for name in names}),
        }


class SacSpec(SoftAlgorithm):
    """Soft actor-critic (Haarnoja et al., 2018), for bounded continuous and for discrete actions."""

    LEARNERS = in_engines(torch="sac:Sac", jax="sac:Sac")

    name: Literal["sac"] = algorithm_name("sac")
    polyak: float = free(
        default=0.005, ge=0, le=1, description="Share of the critics that their targets take at every gradient step."
    )
    policy_delay: int = free(
        default=1, ge=1, le=10_000, description="Gradient steps of the critics per step of policy and temperature."
    )


class CrossQSpec(SoftAlgorithm):
    """Soft actor-critic without target networks, by batch-renormalised critics (Bhatt et al., 2024)."""

    LEARNERS = in_engines(torch="crossq:CrossQ", jax="crossq:CrossQ")
    RECOMPILES = "the limits of crossq's renormalisation move"

    name: Literal["crossq"] = algorithm_name("crossq")
    policy_delay: int = free(
        default=3, ge=1, le=10_000, description="Gradient steps of the critics per step of policy and temperature."
    )
    batch_renorm: bool = fixed(
        "the weights have the shape of the network",
        default=True,
        description="Renormalise the critics' layers by batches; without it they are plain perceptrons.",
    )
    renorm_momentum: float = free(
        default=0.01, gt=0, le=1, description="Share of a batch's statistics that the critics' running ones take."
    )
    renorm_warm_up: int = free(
        default=100_000,
        ge=1,
        le=10**9,
        description="Gradient steps of plain batch normalisation; its correction widens until 8 times as many.",
    )

    def recompiles(self) -> str:
        return super().recompiles() if self.batch_renorm else ""

    def inert(self) -> Mapping[str, str]:
        names = () if self.batch_renorm else ("renorm_momentum", "renorm_warm_up")
        return {**super().inert(), **{f"agent.algorithm.{name}": "batch_renorm is false" for name in names}}


class Td3Spec(TwinAlgorithm):
    """Twin delayed deterministic policy gradient (Fujimoto et al., 2018), for bounded continuous actions."""

    LEARNERS = in_engines(torch="td3:Td3", jax="td3:Td3")
    ACTIONS = "continuous"

    name: Literal["td3"] = algorithm_name("td3")
    polyak: float = free(
        default=0.005, ge=0, le=1, description="Share of the nets that their targets take at every policy update."
    )
    policy_delay: int = free(default=2, ge=1, le=10_000, description="Gradient steps of the critics per policy update.")
    exploration_noise: Annotated[Schedule, Scheduled(ge=0, le=10)] = free(
        default=0.1, description="Deviation of the noise added to actions in play, of a range from -1 to 1."
    )
    target_noise: float = free(
        default=0.2, ge=0, le=10, description="Deviation of the noise that smooths the target policy's actions."
    )
    target_noise_clip: float = free(default=0.5, ge=0, le=10, description="Limit of that noise.")

    def inert(self) -> Mapping[str, str]:
        unsmoothed = {"agent.algorithm.target_noise_clip": "target_noise is 0"}
        return {
            **super().inert(),
            "agent.net.log_std_init": "td3's policy is deterministic",
            **({} if self.target_noise else unsmoothed),
        }
