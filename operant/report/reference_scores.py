"""Scores to measure others by: random play and a reference, of each environment.

The references of control tasks are SLM-Lab 5.3's best published figures (returns in training, mean of 4 sessions, no
spread published). Random play was measured with Gymnasium 1.x: uniform actions on evaluation seeds from 1,000,000 on,
1,000 episodes (100 of Ant, HalfCheetah, Humanoid, HumanoidStandup, Pusher and Swimmer). Atari's are the usual random
and human scores of Wang et al. (2016), of the 26 games of the 100k benchmark; they were measured without sticky
actions, which ALE's v5 environments have.
"""

from __future__ import annotations

REFERENCE_SOURCE = "reference: SLM-Lab 5.3"
RANDOM_SOURCE = "random: 100 to 1,000 episodes, measured"
ATARI_SOURCE = "random and human: Wang et al. (2016)"

# Of each environment what random play and the reference score, and whose the reference is.
CONTROL: dict[str, tuple[float, float, str]] = {
    "CartPole-v1": (22.15, 498.94, "PPO"),
    "Acrobot-v1": (-498.49, -81.28, "PPO"),
    "Pendulum-v1": (-1228.95, -145.66, "CrossQ"),
    "LunarLander-v3": (-186.62, 265.90, "DDQN+PER"),
    "LunarLanderContinuous-v3": (-214.50, 268.91, "CrossQ"),
    "Ant-v5": (-55.36, 4942.91, "SAC"),
    "HalfCheetah-v5": (-279.87, 9815.16, "SAC"),
    "Hopper-v5": (17.98, 1653.74, "PPO"),
    "Humanoid-v5": (112.35, 2661.26, "PPO"),
    "HumanoidStandup-v5": (33610.27, 150912.66, "CrossQ"),
    "InvertedDoublePendulum-v5": (48.49, 9032.67, "SAC"),
    "InvertedPendulum-v5": (5.07, 949.94, "PPO"),
    "Pusher-v5": (-150.33, -37.08, "CrossQ"),
    "Reacher-v5": (-42.76, -5.03, "PPO"),
    "Swimmer-v5": (0.15, 301.34, "SAC"),
    "Walker2d-v5": (1.74, 4389.62, "CrossQ"),
}

# Of each game what random play and a human player score.
ATARI: dict[str, tuple[float, float]] = {
    "Alien": (227.8, 7127.7),
    "Amidar": (5.8, 1719.5),
    "Assault": (222.4, 742.0),
    "Asterix": (210.0, 8503.3),
    "BankHeist": (14.2, 753.1),
    "BattleZone": (2360.0, 37187.5),
    "Boxing": (0.1, 12.1),
    "Breakout": (1.7, 30.5),
    "ChopperCommand": (811.0, 7387.8),
    "CrazyClimber": (10780.5, 35829.4),
    "DemonAttack": (152.1, 1971.0),
    "Freeway": (0.0, 29.6),
    "Frostbite": (65.2, 4334.7),
    "Gopher": (257.6, 2412.5),
    "Hero": (1027.0, 30826.4),
    "Jamesbond": (29.0, 302.8),
    "Kangaroo": (52.0, 3035.0),
    "Krull": (1598.0, 2665.5),
    "KungFuMaster": (258.5, 22736.3),
    "MsPacman": (307.3, 6951.6),
    "Pong": (-20.7, 14.6),
    "PrivateEye": (24.9, 69571.3),
    "Qbert": (163.9, 13455.0),
    "RoadRunner": (11.5, 7845.0),
    "Seaquest": (68.4, 42054.7),
    "UpNDown": (533.4, 11693.2),
}
