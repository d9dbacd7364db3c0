"""The scripted agents: the lazy one insists on A."""

from __future__ import annotations

from operant.envs.research.kit.match_agents import match_agents

from .opponents import GAME

AGENTS = match_agents(GAME, __file__, lazy="A")
