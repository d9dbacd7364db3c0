"""What a person may say about algorithms.

Each algorithm is one class and one entry in `ALGORITHMS`; the spec, its errors, its help and its
JSON Schema all follow from these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from operant.spec.algorithm import Algorithm
from operant.spec.algorithm_misfits import lookahead_misfits, replay_misfits, round_misfits
from operant.spec.child_marks import fixed, free
from operant.spec.exploration import ExploringAlgorithm
from operant.spec.misfit import Misfit
from operant.spec.off_policy import CrossQSpec, SacSpec, Td3Spec
from operant.spec.on_policy import A2cSpec, RandomSpec, ReinforceSpec, SarsaSpec
from operant.spec.proximal import PpoSpec
from operant.spec.rlvr import VERIFIED
from operant.spec.self_imitation import PpoSilSpec, SilSpec

if TYPE_CHECKING:
    from operant.spec.schema import Spec


class DqnSpec(ExploringAlgorithm):
    """Deep Q-learning (Mnih et al., 2015), with the Double (van Hasselt et al., 2016) target, of means or quantiles."""

    ENGINE = "torch"
    RESUME = "exact"
    USES_MEMORY = True
    TAKES_MASKS = True

    name: Literal["dqn"] = fixed("each algorithm keeps what it needs itself", default="dqn", description="Algorithm.")
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
    loss: Literal["huber", "mse"] = free(default="huber", description="Loss of the temporal-difference error.")
    training_start: int = free(default=1000, ge=1, le=10**12, description="Frames before the first gradient step.")
    training_frequency: int = free(
        default=4, ge=1, le=10**12, description="Frames between rounds of gradient steps; a multiple of num_envs."
    )
    training_iter: int = free(default=1, ge=1, le=10_000, description="Gradient steps in one round.")
    target_update: int = free(
        default=500, ge=1, le=10**12, description="Frames between copies to the target net (with `polyak` 1)."
    )
    polyak: float = free(
        default=1.0,
        gt=0,
        le=1,
        description="1 copies the net every `target_update` frames; below 1 blends at every round.",
    )

    def fixed_here(self) -> Mapping[str, str]:
        return {"gamma": "the rewards in the replay are discounted by it"} if self.n_step > 1 else {}

    def misfits(self, spec: Spec) -> Iterable[Misfit]:
        return [*round_misfits(spec, self), *replay_misfits(spec, self), *lookahead_misfits(spec, self)]

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


ALGORITHMS: dict[str, type[Algorithm]] = {
    "ppo": PpoSpec,
    "dqn": DqnSpec,
    "a2c": A2cSpec,
    "reinforce": ReinforceSpec,
    "sac": SacSpec,
    "sarsa": SarsaSpec,
    "td3": Td3Spec,
    "crossq": CrossQSpec,
    "random": RandomSpec,
    "sil": SilSpec,
    "ppo_sil": PpoSilSpec,
    **VERIFIED,
}
