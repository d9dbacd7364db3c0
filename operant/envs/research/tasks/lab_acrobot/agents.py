"""The scripted agents: the expert learns from a memory, by double DQN."""

from __future__ import annotations

from operant.envs.research.kit.lab_agents import lab_agents

EXPERT = """name: lab_acrobot
env: {name: Acrobot-v1, num_envs: 4, max_frame: 20_000}
agent:
  algorithm:
    name: dqn
    double: true
    gamma: 0.99
    epsilon: {start: 1.0, end: 0.02, frames: 6_000}
    training_start: 1000
    training_frequency: 8
    training_iter: 2
    target_update: 100
  memory: {name: replay, batch_size: 64, max_size: 20_000}
  net:
    type: mlp
    hidden: [64, 64]
    activation: relu
    init: torch
    optimizer: {name: adam, lr: 2e-3, lr_end_fraction: 0.0, eps: 1e-8, clip_grad_norm: 10.0}
meta: {max_session: 2, eval_frequency: 20_000, save_frequency: 20_000, eval_episodes: 1, final_episodes: 50}
"""
AGENTS = lab_agents(__file__, EXPERT)
