"""Settings of PPO, and of self-imitation beside PPO or A2C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from operant.spec.fields import fixed, free
from operant.spec.registry import in_engines
from operant.spec.schedules import Schedule, Scheduled
from operant.spec.settings.algorithm import Algorithm, algorithm_name
from operant.spec.settings.nets import Units
from operant.spec.settings.on_policy import AdvantageAlgorithm, AdvantageScale, EpisodicAlgorithm, ValueLoss

REFERENCE_SAMPLES = 32_768
MOST_MINIBATCHES = 64
LEAST_EPOCHS = 2


class ProximalAlgorithm(EpisodicAlgorithm):
    """The base of algorithms with the clipped objective of PPO (abstract)."""

    STEPS = "time_horizon"
    TAKES_MASKS = ("torch", "jax")
    TAKES_SEQUENCES = True

    gamma: float = free(default=0.99, ge=0, le=1, description="Discount of future reward.")
    lam: float = free(default=0.95, ge=0, le=1, description="Lambda of generalised advantage estimation.")
    time_horizon: int = free(default=128, ge=1, le=1_000_000, description="Steps of each environment per update.")
    minibatch_size: int = free(
        default=128,
        ge=1,
        le=100_000_000,
        description="Samples per gradient step; must divide num_envs x time_horizon. Of whole episodes the last"
        " minibatch has what is left, and a recurrent network learns from all of them at once.",
    )
    training_epoch: int = free(default=4, ge=1, le=1000, description="Passes over the samples of one update.")
    auto_scale: bool = free(
        default=False,
        description="Above 32,768 samples an update, more minibatches and fewer epochs in proportion; jax engine.",
    )
    clip_eps: Annotated[Schedule, Scheduled(gt=0, le=1)] = free(
        default=0.2, description="Clip range of the probability ratio."
    )
    entropy_coef: Annotated[Schedule, Scheduled(ge=0, le=10)] = free(
        default=0.01, description="Weight of the entropy bonus."
    )
    val_loss_coef: float = free(default=0.5, ge=0, le=100, description="Weight of the value loss.")
    val_loss: ValueLoss = free(default="mse", description="Loss of the critic's error, without `clip_vloss`.")
    clip_vloss: float | None = free(
        default=None,
        gt=0,
        le=1e6,
        description="Clip range of the value change; null for none. With it the loss is a mean squared error.",
    )
    normalize_advantages: AdvantageScale = free(
        default="standardise",
        description="Advantages standardised within each minibatch (or `true`), divided by the running 5th-to-95th"
        " percentile range of returns, or left as they are (or `false`).",
    )
    symlog: bool = fixed(
        "the critic's outputs are on this scale",
        default=False,
        description="The critic learns sign(R) log(1 + |R|) of returns R.",
    )
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
    target_kl: float | None = free(
        default=None, gt=0, le=100, description="Stop an update's epochs above this KL; null for never."
    )

    def fixed_in_fork(self) -> Mapping[str, str]:
        spread = {"normalize_advantages": "the running spread of returns is kept with percentile only"}
        return spread if self.normalize_advantages == "percentile" else {}

    def scaled(self, num_envs: int) -> tuple[int, int]:
        """Minibatch size and epochs of an update, as they are or as `auto_scale` makes them.

        With s times the samples of reference, there are s times the minibatches, up to 64, and a
        share 1/s of the epochs, at least 2: minibatches keep their size and gradient steps stay bounded.
        """
        samples = num_envs * self.time_horizon
        scale = samples // REFERENCE_SAMPLES
        if not self.auto_scale or scale < 2:
            return self.minibatch_size, self.training_epoch
        before = samples // self.minibatch_size
        wanted = max(before, min(before * scale, MOST_MINIBATCHES))
        count = next(count for count in range(wanted, 0, -1) if samples % count == 0)
        return samples // count, min(self.training_epoch, max(LEAST_EPOCHS, self.training_epoch // scale))

    def inert(self) -> Mapping[str, str]:
        clipped = {"agent.algorithm.val_loss": "clip_vloss has a squared error"} if self.clip_vloss else {}
        scaled = {"agent.algorithm.auto_scale": "training_episodes is set"} if self.training_episodes else {}
        return {**super().inert(), "agent.net.duelling": f"{self.name} has no Q-network", **clipped, **scaled}


class PpoSpec(ProximalAlgorithm):
    """Proximal policy optimisation with a clipped objective (Schulman et al., 2017)."""

    LEARNERS = in_engines(torch="ppo:Ppo", jax="ppo:Ppo")
    SHARES_PROCESSES = True

    name: Literal["ppo"] = algorithm_name("ppo")


class ImitatingAlgorithm(Algorithm):
    """The base of algorithms that also imitate their own best past (abstract)."""

    USES_MEMORY = True
    MEMORY = "prioritised"
    TAKES_SEQUENCES = False

    sil_iter: int = free(
        default=4, ge=1, le=10_000, description="Gradient steps on past episodes after each on-policy update."
    )
    sil_policy_coef: float = free(default=1.0, ge=0, le=100, description="Weight of their policy loss.")
    sil_value_coef: float = free(default=0.01, ge=0, le=100, description="Weight of their value loss.")

    def fixed_in_fork(self) -> Mapping[str, str]:
        return {**super().fixed_in_fork(), "gamma": "the returns in the memory are discounted by it"}


class SilSpec(ImitatingAlgorithm, AdvantageAlgorithm):
    """Advantage actor-critic with self-imitation of past episodes (Oh et al., 2018)."""

    LEARNERS = in_engines(torch="sil:Sil")

    name: Literal["sil"] = algorithm_name("sil")


class PpoSilSpec(ImitatingAlgorithm, ProximalAlgorithm):
    """Proximal policy optimisation with self-imitation of past episodes (Oh et al., 2018)."""

    LEARNERS = in_engines(torch="sil:PpoSil")

    name: Literal["ppo_sil"] = algorithm_name("ppo_sil")
