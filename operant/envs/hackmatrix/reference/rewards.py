"""The fifteen parts of the reward of one step."""

from __future__ import annotations

from dataclasses import dataclass

from operant.envs.hackmatrix.constants import (
    DEATH_SHARE,
    DISTANCE_PAY,
    FINAL_STAGE_PAY,
    HOLDING_PAY,
    KILL_PAY,
    PICKUP_PAY,
    QUALITY_SHARE,
    RESOURCE_PAY,
    REWARD_PARTS,
    SCORE_PAY,
    SIPHON_DEATH_PAY,
    STAGE_PAY,
    STAGES,
    STEP_PENALTY,
    VICTORY_PAY,
    VICTORY_SCORE_PAY,
    WASTE_PAY,
)
from operant.envs.hackmatrix.reference.board import NEIGHBOURS, distance
from operant.envs.hackmatrix.reference.moves import Deed
from operant.envs.hackmatrix.reference.state import State

NOTHING: dict[str, float] = dict.fromkeys(REWARD_PARTS, 0.0)


@dataclass(frozen=True, slots=True)
class Before:
    """What a reward must know of the state before the action."""

    stage: int
    score: int
    hp: int
    credits: int
    energy: int
    distance: int


def note(state: State) -> Before:
    """Take down what the reward of the coming step compares with."""
    player = state.player
    return Before(state.stage, player.score, player.hp, player.credits, player.energy, exit_distance(state))


def exit_distance(state: State) -> int:
    """Length of the way to the exit position; 0 without one."""
    return distance(state.player.at, state.exit, state.walls())


def reward_parts(before: Before, state: State, deed: Deed, *, enemies_acted: bool, won: bool) -> dict[str, float]:
    """What a carried-out action earned, by part."""
    player, died = state.player, state.player.hp == 0
    gained_hp = player.hp - before.hp
    resources = player.credits - before.credits + player.energy - before.energy
    held = player.credits + player.energy if deed.reached_exit else 0
    return {
        "step_penalty": STEP_PENALTY,
        "stage_completion": _stage_pay(before.stage) if deed.reached_exit else 0.0,
        "score_gain": SCORE_PAY * (player.score - before.score),
        "kills": KILL_PAY * deed.kills,
        "data_siphon": PICKUP_PAY * deed.picked_up,
        "distance_shaping": DISTANCE_PAY * max(_approach(before, state, deed), 0),
        "damage_penalty": float(min(gained_hp, 0)),
        "hp_recovery": float(max(gained_hp, 0)),
        "victory": VICTORY_PAY + VICTORY_SCORE_PAY * player.score if won else 0.0,
        "death_penalty": DEATH_SHARE * sum(STAGE_PAY[: state.stage - 1]) if died else 0.0,
        "siphon_death_penalty": SIPHON_DEATH_PAY if enemies_acted and died and _siphon_enemy_near(state) else 0.0,
        "resource_gain": RESOURCE_PAY * resources,
        "resource_holding": HOLDING_PAY * held,
        "program_waste": WASTE_PAY if deed.wasted else 0.0,
        "siphon_quality": QUALITY_SHARE * RESOURCE_PAY * sum(deed.missed),
    }


def _stage_pay(completed: int) -> float:
    return float(FINAL_STAGE_PAY if completed == STAGES else STAGE_PAY[completed - 1])


def _approach(before: Before, state: State, deed: Deed) -> int:
    """By how much the exit has come nearer."""
    if state.player.hp == 0:
        return 0
    return before.distance if deed.reached_exit else before.distance - exit_distance(state)


def _siphon_enemy_near(state: State) -> bool:
    return any(enemy.from_siphon and enemy.at in NEIGHBOURS[state.player.at] for enemy in state.enemies)
