"""The scripted agents: the expert learns faster, more often and with a longer view."""

from __future__ import annotations

from operant.envs.research.kit.lab_agents import lab_agents

EXPERT = """name: lab_cartpole
env: {name: CartPole-v1, num_envs: 8, max_frame: 20_000}
agent:
  algorithm:
    {name: ppo, gamma: 0.98, lam: 0.95, time_horizon: 64, minibatch_size: 128, training_epoch: 12, entropy_coef: 0.0}
  net:
    type: mlp
    hidden: [64, 64]
    optimizer: {name: adam, lr: 2e-3, critic_lr: 2e-3, lr_end_fraction: 0.0, clip_each: true}
meta: {max_session: 2, eval_frequency: 20_000, save_frequency: 20_000, eval_episodes: 1, final_episodes: 50}
"""
AGENTS = lab_agents(__file__, EXPERT)
