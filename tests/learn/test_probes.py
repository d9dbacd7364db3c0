"""Five probe problems, each of which fails for its own reason when a part of a learner is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from operant.engines.torch.crossq import CrossQ
from operant.engines.torch.learners import build_learner
from operant.engines.torch.loop import Learner
from operant.engines.torch.networks.heads import ActorCritic
from operant.engines.torch.on_policy import OnPolicyLearner
from operant.engines.torch.sac import Sac
from operant.engines.torch.td3 import Td3
from operant.envs.gym import make_env
from operant.envs.probe import PROBES, Probe
from operant.envs.vector.evaluation import play
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

GAMMA = 0.9
FRAMES = {
    "ppo": 12_000,
    "ppo-continuous": 16_000,
    "dqn": 4_000,
    "dqn-duelling-prioritised": 4_000,
    "a2c": 12_000,
    "a2c-n-step-continuous": 24_000,
    "reinforce": 8_000,
    "reinforce-continuous": 24_000,
    "sarsa": 8_000,
}
FRAMES |= {"sac": 4_000, "sac-continuous": 4_000, "td3-continuous": 4_000, "dqn-n-step-combined": 4_000}
FRAMES |= {"ppo-return-scale": 12_000, "a2c-return-scale": 12_000, "dqn-boltzmann": 4_000, "sarsa-boltzmann": 8_000}
FRAMES |= {"dqn-quantiles": 4_000, "crossq": 4_000, "crossq-continuous": 4_000}
FRAMES |= {
    "ppo-pixels": 12_000,
    "dqn-duelling-pixels": 4_000,
    "sac-pixels": 3_000,
}
FRAMES |= {"reinforce-pixels": 8_000, "sarsa-pixels": 8_000, "ppo-separate-pixels": 12_000}
FRAMES |= {"sil": 12_000, "ppo-sil-continuous": 16_000}
FRAMES |= {"ppo-normed": 12_000, "dqn-normed": 4_000, "sac-normed-continuous": 4_000}
NEEDS_VALUES = ("constant", "observation", "discount")
PPO = {"name": "ppo", "gamma": GAMMA, "time_horizon": 32, "minibatch_size": 64, "entropy_coef": 0.0}
DQN = {
    "name": "dqn",
    "gamma": GAMMA,
    "training_start": 100,
    "target_update": 50,
    "epsilon": {"start": 1.0, "end": 0.1, "frames": 2000},
}
A2C = {"name": "a2c", "gamma": GAMMA, "training_frequency": 8, "entropy_coef": 0.0}
REINFORCE = {"name": "reinforce", "gamma": GAMMA, "training_frequency": 16, "entropy_coef": 0.0}
SAC = {
    "name": "sac",
    "gamma": GAMMA,
    "training_start": 100,
    "training_iter": 2,
    "polyak": 0.05,
    "temperature": 0.05,
    "entropy_scale": 0.5,
}
SARSA = {
    "name": "sarsa",
    "gamma": GAMMA,
    "training_frequency": 4,
    "epsilon": {"start": 1.0, "end": 0.1, "frames": 2000},
}
CROSSQ = {
    "name": "crossq",
    "gamma": GAMMA,
    "training_start": 100,
    "training_iter": 2,
    "policy_delay": 2,
    "temperature": 0.05,
    "entropy_scale": 0.5,
    "renorm_warm_up": 100,
}
TD3 = {"name": "td3", "gamma": GAMMA, "training_start": 200, "training_iter": 2, "polyak": 0.05, "target_noise": 0.1}


def boltzmann(algorithm: dict) -> dict:
    """The same, exploring by temperature."""
    others = {key: value for key, value in algorithm.items() if key != "epsilon"}
    return {**others, "exploration": "boltzmann", "temperature": {"start": 1.0, "end": 0.1, "frames": 2000}}


FAST = {"hidden": [32], "optimizer": {"lr": 3e-3}}
NORMED = {**FAST, "layer_norm": True}
CNN = {"type": "nature_cnn", "conv": [[4, 4, 4]], "hidden": [32], "optimizer": {"lr": 3e-3}}
CALM = {"hidden": [32], "optimizer": {"lr": 1e-3}}
LEARNERS = {
    "ppo": {"algorithm": PPO, "net": FAST},
    "ppo-continuous": {"algorithm": PPO, "net": {**FAST, "log_std_init": -0.5}},
    "dqn": {"algorithm": DQN, "net": FAST},
    "dqn-duelling-prioritised": {
        "algorithm": DQN,
        "memory": {"name": "prioritised", "max_size": 2000},
        "net": {**FAST, "duelling": True},
    },
    "a2c": {"algorithm": A2C, "net": FAST},
    "a2c-n-step-continuous": {
        "algorithm": {**A2C, "num_step_returns": 2},
        "net": {**FAST, "log_std_init": -0.5},
    },
    "reinforce": {"algorithm": REINFORCE, "net": FAST},
    "reinforce-continuous": {"algorithm": REINFORCE, "net": {**FAST, "log_std_init": -0.5}},
    "sac": {"algorithm": SAC, "net": FAST},
    "sac-continuous": {"algorithm": SAC, "net": FAST},
    "sarsa": {"algorithm": SARSA, "net": FAST},
    "td3-continuous": {"algorithm": TD3, "net": FAST},
    "dqn-n-step-combined": {
        "algorithm": {**DQN, "n_step": 3},
        "memory": {"name": "replay", "combined": True},
        "net": FAST,
    },
    "ppo-return-scale": {
        "algorithm": {**PPO, "normalize_advantages": "percentile", "symlog": True, "normalize_v_targets": True},
        "net": FAST,
    },
    "dqn-boltzmann": {"algorithm": boltzmann(DQN), "net": FAST},
    "sarsa-boltzmann": {"algorithm": boltzmann(SARSA), "net": FAST},
    "dqn-quantiles": {"algorithm": {**DQN, "distributional": "qr", "quantiles": 11}, "net": FAST},
    "crossq": {"algorithm": CROSSQ, "net": CALM},
    "crossq-continuous": {"algorithm": CROSSQ, "net": CALM},
    "a2c-return-scale": {"algorithm": {**A2C, "normalize_v_targets": True}, "net": FAST},
    "ppo-pixels": {"algorithm": PPO, "net": CNN},
    "ppo-separate-pixels": {"algorithm": PPO, "net": {**CNN, "shared": False}},
    "reinforce-pixels": {"algorithm": REINFORCE, "net": CNN},
    "sarsa-pixels": {"algorithm": SARSA, "net": CNN},
    "dqn-duelling-pixels": {
        "algorithm": DQN,
        "memory": {"name": "prioritised", "max_size": 2000},
        "net": {**CNN, "duelling": True},
    },
    "sac-pixels": {"algorithm": SAC, "net": CNN},
    "sil": {"algorithm": {**A2C, "name": "sil", "sil_iter": 1}, "net": FAST},
    "ppo-sil-continuous": {"algorithm": {**PPO, "name": "ppo_sil"}, "net": {**FAST, "log_std_init": -0.5}},
    "ppo-normed": {"algorithm": PPO, "net": NORMED},
    "dqn-normed": {"algorithm": DQN, "net": NORMED},
    "sac-normed-continuous": {"algorithm": SAC, "net": NORMED},
}
# With every change: the hardest problem, which needs what the others need one by one, for a learner of each kind.
OFTEN = ("ppo", "dqn", "a2c", "reinforce")


def train(learner: str, probe: str, seed: int) -> Learner:
    kwargs = {kind: True for kind in ("continuous", "pixels") if learner.endswith(kind)}
    name = f"operant/Probe{probe.capitalize()}-v0"
    env = {"name": name, "num_envs": 4, "max_frame": FRAMES[learner], "kwargs": kwargs}
    spec = Spec.model_validate({"env": env, "agent": LEARNERS[learner]})
    built = build_learner(spec, Seeds(seed), torch.device("cpu"))
    while built.tracker.frames < FRAMES[learner]:
        built.iterate()
    return built


def seen(learner: Learner, observation: float) -> np.ndarray:
    """An observation as the learner's environment shows it."""
    probe = make_env(learner.spec.env).unwrapped
    assert isinstance(probe, Probe)
    probe._seen = observation
    return probe._observe()


def values(learner: Learner, *observations: float) -> np.ndarray:
    """State values of these observations: of the critic, or of the best action; SAC's without the entropy."""
    obs = torch.from_numpy(np.stack([seen(learner, observation) for observation in observations]))
    with torch.no_grad():
        if isinstance(learner, Sac | CrossQ):
            noise = torch.zeros(len(obs), 1)
            return learner.actions.expect(learner.policy(obs), learner.critic.forward_frozen, obs, noise)[0].numpy()
        if isinstance(learner, Td3):
            return learner.critic(torch.cat((obs, learner.policy(obs).tanh()), -1))[0, :, 0].numpy()
        if isinstance(learner, OnPolicyLearner):
            assert isinstance(learner.net, ActorCritic), "no probe needs a memory"
            return learner.returns.value_of(learner.net.value(obs).numpy())
        return learner.net(obs).max(-1).values.numpy()


def has_values(learner: str) -> bool:
    """Without a value, three of the probes have nothing to ask."""
    return not learner.startswith("reinforce")


def marks(learner: str, probe: str) -> list[pytest.MarkDecorator]:
    return [] if learner in OFTEN and probe == "both" else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("learner", "probe"),
    [
        pytest.param(name, probe, marks=marks(name, probe))
        for name in LEARNERS
        for probe in PROBES
        if has_values(name) or probe not in NEEDS_VALUES
    ],
)
def test_probe(learner: str, probe: str):
    torch.set_num_threads(1)
    built = train(learner, probe, seed=1)
    if probe == "constant":
        np.testing.assert_allclose(values(built, 0.0), [1.0], atol=0.1)
    elif probe == "observation":
        np.testing.assert_allclose(values(built, -1.0, 1.0), [-1.0, 1.0], atol=0.1)
    elif probe == "discount":
        np.testing.assert_allclose(values(built, 0.0, 1.0), [GAMMA, 1.0], atol=0.1)
    else:
        best = 0.0 if learner.endswith("continuous") else 1.0
        scores = [over.score for over in play(built.spec.env, built.actor.greedy, 20, 500)]
        assert np.mean(scores) == pytest.approx(best, abs=0.06)
