"""What happened in a step, in sentences. Nothing is reported that the player could not see."""

from __future__ import annotations

from dataclasses import dataclass, replace

from operant.envs.hackmatrix.constants import (
    ACTION_NAMES,
    ENEMY_NAMES,
    FIRST_PROGRAM,
    PROGRAM_NAMES,
    SIPHON,
    STAGES,
    UNDO,
)
from operant.envs.hackmatrix.reference.board import place
from operant.envs.hackmatrix.reference.game import Game, Outcome
from operant.envs.hackmatrix.reference.observation import is_hidden
from operant.envs.hackmatrix.reference.state import Enemy, Player, State, Transmission


@dataclass(frozen=True)
class _Piece:
    """An enemy as it was before the step."""

    enemy: Enemy
    was: Enemy
    hidden: bool


@dataclass(frozen=True)
class _Before:
    """What the step is compared with."""

    player: Player
    stage: int
    turn: int
    owned: tuple[int, ...]
    pieces: tuple[_Piece, ...]
    transmissions: tuple[Transmission, ...]


def step_with_events(game: Game, action: int) -> tuple[Outcome, list[str]]:
    """Play an action; its outcome and the events in their order."""
    before = _note(game.state)
    outcome = game.step(action)
    return outcome, list(_tell(before, game.state, action, outcome))


def _note(state: State) -> _Before:
    pieces = tuple(_Piece(enemy, replace(enemy), is_hidden(state, enemy)) for enemy in state.enemies)
    return _Before(
        replace(state.player), state.stage, state.turn, tuple(state.owned), pieces, tuple(state.transmissions)
    )


def _tell(before: _Before, state: State, action: int, outcome: Outcome) -> list[str]:
    if outcome.refused:
        return [f"{ACTION_NAMES[action]} cannot be done here: the game is over."]
    events = [_deed(before, state, action), *_gains(before, state)]
    if action == FIRST_PROGRAM + UNDO:
        return events
    events += [*_fates(before, state), *_arrivals(before, state), *_losses(before, state)]
    if outcome.won:
        events.append(f"You complete stage {STAGES} and win the game.")
    elif outcome.stage_completed:
        events.append(f"You complete stage {before.stage}; stage {state.stage} begins.")
    if outcome.died:
        events.append(f"You have died in stage {state.stage}.")
    return events


def _deed(before: _Before, state: State, action: int) -> str:
    if action >= FIRST_PROGRAM:
        return f"You run {ACTION_NAMES[action]}{_moved_to(before, state)}."
    if action == SIPHON:
        return "You siphon your cell and its four neighbours."
    if before.player.at == state.player.at:
        return f"You attack {ACTION_NAMES[action]}."
    return f"You go {ACTION_NAMES[action]} to {_cell(state.player.at)}."


def _moved_to(before: _Before, state: State) -> str:
    return f", which takes you to {_cell(state.player.at)}" if before.player.at != state.player.at else ""


def _gains(before: _Before, state: State) -> list[str]:
    """Changes of what the player has, in one sentence, and new programs in another."""
    changes = [
        f"{getattr(state.player, name) - getattr(before.player, name):+d} {words}"
        for name, words in (
            ("credits", "credits"),
            ("energy", "energy"),
            ("siphons", "data siphons"),
            ("score", "points"),
            ("attack", "attack"),
        )
        if getattr(state.player, name) != getattr(before.player, name)
    ]
    new = [PROGRAM_NAMES[program] for program in state.owned if program not in before.owned]
    return [", ".join(changes) + "."] * bool(changes) + [f"New programs: {', '.join(new)}."] * bool(new)


def _fates(before: _Before, state: State) -> list[str]:
    """What became of the enemies and transmissions that were there."""
    events: list[str] = []
    alive = set(map(id, state.enemies))
    for piece in before.pieces:
        was, now = piece.was, piece.enemy
        if id(now) not in alive:
            events.append(f"The {ENEMY_NAMES[was.kind]} at {_cell(was.at)} is destroyed.")
        elif not (piece.hidden or is_hidden(state, now)):
            events += _change(was, now)
        elif not piece.hidden:
            events.append(f"The {ENEMY_NAMES[was.kind]} at {_cell(was.at)} goes out of sight.")
        elif not is_hidden(state, now):
            events.append(f"A {ENEMY_NAMES[now.kind]} comes into sight at {_cell(now.at)}.")
    waiting = set(map(id, state.transmissions))
    hatched = {enemy.at for enemy in _new_enemies(before, state)}
    shot = [one for one in before.transmissions if id(one) not in waiting and one.at not in hatched]
    return events + [f"The transmission at {_cell(one.at)} is destroyed." for one in shot]


def _change(was: Enemy, now: Enemy) -> list[str]:
    name = ENEMY_NAMES[was.kind]
    events: list[str] = []
    if now.kind != was.kind:
        events.append(f"The {name} at {_cell(was.at)} becomes a {ENEMY_NAMES[now.kind]} with {now.hp} hp.")
    elif now.hp != was.hp:
        events.append(f"The {name} at {_cell(was.at)} is hit: {now.hp} hp left.")
    if now.at != was.at:
        events.append(f"The {name} moves from {_cell(was.at)} to {_cell(now.at)}.")
    return events


def _new_enemies(before: _Before, state: State) -> list[Enemy]:
    known = {id(piece.enemy) for piece in before.pieces}
    return [enemy for enemy in state.enemies if id(enemy) not in known]


def _arrivals(before: _Before, state: State) -> list[str]:
    hatched = [
        f"The transmission at {_cell(enemy.at)} hatches"
        + ("." if is_hidden(state, enemy) else f": a {ENEMY_NAMES[enemy.kind]} with {enemy.hp} hp.")
        for enemy in _new_enemies(before, state)
    ]
    known = set(map(id, before.transmissions))
    sent = [_cell(one.at) for one in state.transmissions if id(one) not in known]
    return hatched + [f"New transmissions at {' '.join(sent)}."] * bool(sent)


def _losses(before: _Before, state: State) -> list[str]:
    change = state.player.hp - before.player.hp
    if change < 0:
        return [f"You are attacked: {change} hp."]
    return [f"+{change} hp."] * bool(change)


def _cell(at: int) -> str:
    return "({},{})".format(*place(at))
