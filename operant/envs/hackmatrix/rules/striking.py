"""What an action does to enemies and transmissions: hits, removals, new types and places, and the kills it counts."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from operant.envs.hackmatrix.constants import (
    ANTI_V,
    AT_POLY,
    AT_WARP,
    COL,
    CRASH,
    CRYPTOG,
    D_BOM,
    DAEMON,
    DEBUG,
    DELAY,
    DELAY_TURNS,
    HACK,
    HIT_BY_ANTI_V,
    POLY,
    PULL,
    PUSH,
    ROW,
    VIRUS,
    WARP,
)  # fmt: skip
from operant.envs.hackmatrix.rules.aiming import Act
from operant.envs.hackmatrix.rules.bits import ROW_BITS, col_of, eight, holds, is_on_board, manhattan, row_of
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import is_first, settled, total
from operant.envs.hackmatrix.rules.legality import Facts
from operant.envs.hackmatrix.rules.lists import (
    MAX_HP,
    Enemies,
    Transmissions,
    slots,
    write_enemies,
    write_transmissions,
)
from operant.envs.hackmatrix.rules.state import Scene

FAR = 64  # more than any distance


def shove(at: Array, player: Array, pull: Array) -> tuple[Array, Array]:
    """Where each enemy is sent from where it stands, and whether there is such a cell."""
    toward = jnp.where(pull, -1, 1)
    rows = toward * jnp.sign(row_of(at) - row_of(player)) * ROW_BITS
    cols = toward * jnp.sign(col_of(at) - col_of(player))
    ways = [(rows + cols, None), (rows, rows != 0), (cols, cols != 0)]
    best, target = jnp.full_like(at, FAR), at
    for change, offered in ways:
        square = at + change
        fits = is_on_board(square) & ~(pull & (square == player))
        fits = fits if offered is None else fits & offered
        cost = toward * -manhattan(square, player)
        better = fits & (cost < best)
        best, target = jnp.where(better, cost, best), jnp.where(better, square, target)
    return target, best < FAR


NOBODY = 1 << 20
OTHER_KINDS = len(MAX_HP) - 1


class Victim(NamedTuple):
    """The entry of a list that an action singles out; its slot is NOBODY where there is none."""

    slot: Array
    square: Array

    @property
    def exists(self) -> Array:
        return self.slot < NOBODY


class Blow(NamedTuple):
    """The lists after an action, the kills that pay, and where WARP takes the player."""

    enemies: Array
    transmissions: Array
    kills: Array
    landing: Array


def strike(scene: Scene, facts: Facts, act: Act, source: Source) -> Blow:
    """Carry out what an action does to others."""
    warp_index = source.pick(AT_WARP, jnp.maximum(facts.enemy_count + facts.transmission_count, 1))
    victim = _enemy_victim(scene, facts.enemies, act, warp_index)
    signal = _signal_victim(facts.transmissions, act, warp_index - facts.enemy_count)
    enemies, kills = _strike_enemies(scene, facts.enemies, act, victim, source)
    signals, more_kills = _strike_transmissions(scene, facts.transmissions, act, signal)
    landing = jnp.where(victim.exists, victim.square, signal.square)
    return Blow(settled(write_enemies(enemies)), settled(write_transmissions(signals)), kills + more_kills, landing)


def _enemy_victim(scene: Scene, enemies: Enemies, act: Act, warp_index: Array) -> Victim:
    """The first in line, the one to warp to, or the daemon nearest to the player."""
    index = slots(scene.at)
    bombs, warps = act.runs(D_BOM), act.runs(WARP)
    in_line = act.strikes & ~act.aim.is_transmission & (enemies.at == act.aim.target)
    fits = jnp.where(bombs, enemies.kind == DAEMON, jnp.where(warps, index == warp_index, in_line))
    rank = jnp.where(bombs, manhattan(enemies.at, scene.at) * 64, 0) + index
    return _least(rank, enemies.alive & fits, enemies.at)


def _signal_victim(signals: Transmissions, act: Act, warp_index: Array) -> Victim:
    index = slots(signals.at[0])
    in_line = act.strikes & act.aim.is_transmission & (signals.at == act.aim.target)
    fits = jnp.where(act.runs(WARP), index == warp_index, in_line)
    return _least(index, signals.alive & fits, signals.at)


def _least(rank: Array, fits: Array, at: Array) -> Victim:
    """The fitting entry of least rank, found together with its square in one reduction."""
    best = jnp.where(fits, rank * 64 + at, NOBODY).min(0)
    found = best < NOBODY
    return Victim(jnp.where(found, best >> 6 & 63, NOBODY), jnp.where(found, best & 63, 0))


def _strike_enemies(scene: Scene, old: Enemies, act: Act, victim: Victim, source: Source) -> tuple[Enemies, Array]:
    chosen = slots(scene.at) == victim.slot
    shoves, turns = act.runs_any(PUSH, PULL), act.runs(POLY)
    target, movable = shove(old.at, scene.at, act.runs(PULL))
    # Of several sent to one cell the first goes there; of several on one cell the first decides about a kill.
    wanted = settled(jnp.where(shoves, target, old.at))
    first = is_first(wanted, settled(old.alive & (movable | ~shoves)))
    kind = jnp.where(turns, _other_kind(old.kind, source), old.kind)
    hit, damage = _hits(scene, old, act, victim, chosen)
    hp = old.hp - jnp.where(hit, damage, 0) + jnp.where(turns, _most_hp(kind) - _most_hp(old.kind), 0)
    removed = _removed(scene, old, act, victim, chosen)
    alive = old.alive & (hp > 0) & ~removed
    paid = old.alive & ~alive & ~old.from_task & (first | ~act.runs_any(CRASH, WARP))
    new = old._replace(
        alive=alive,
        kind=kind,
        at=jnp.where(shoves & movable & first, target, old.at),
        hp=hp,
        last_seen=jnp.where(turns & (kind == CRYPTOG), old.at, old.last_seen),
        stunned=old.stunned | hit,
    )
    return new, total(paid)


def _hits(scene: Scene, enemies: Enemies, act: Act, victim: Victim, chosen: Array) -> tuple[Array, Array]:
    """Who loses HP without being removed at once, and how much."""
    same_row, same_col = row_of(enemies.at) == row_of(scene.at), col_of(enemies.at) == col_of(scene.at)
    by_attack = (
        act.strikes & chosen
        | act.runs(DEBUG) & holds(scene.blocks, enemies.at)
        | act.runs(ROW) & same_row
        | act.runs(COL) & same_col
        | act.runs(HACK) & holds(scene.siphoned, enemies.at)
    )
    by_bomb = act.runs(D_BOM) & holds(eight(victim.square), enemies.at)
    by_antidote = act.runs(ANTI_V) & (enemies.kind == VIRUS)
    return by_attack | by_bomb | by_antidote, jnp.where(by_attack, scene.attack, HIT_BY_ANTI_V)


def _removed(scene: Scene, enemies: Enemies, act: Act, victim: Victim, chosen: Array) -> Array:
    """Who is gone whatever their HP."""
    crashed = act.runs(CRASH) & holds(eight(scene.at), enemies.at)
    landed_on = act.runs(WARP) & victim.exists & (enemies.at == victim.square)
    return crashed | landed_on | act.runs(D_BOM) & chosen


def _strike_transmissions(scene: Scene, old: Transmissions, act: Act, victim: Victim) -> tuple[Transmissions, Array]:
    chosen = slots(scene.at) == victim.slot
    crashed = act.runs(CRASH) & holds(eight(scene.at), old.at)
    landed_on = act.runs(WARP) & victim.exists & (old.at == victim.square)
    removed = old.alive & (crashed | landed_on | act.strikes & chosen)
    first = is_first(old.at, old.alive)
    paid = removed & ~old.from_task & (first | act.strikes)
    turns = old.turns + jnp.where(act.runs(DELAY), DELAY_TURNS, 0)
    return old._replace(alive=old.alive & ~removed, turns=turns), total(paid)


def _other_kind(kind: Array, source: Source) -> Array:
    """POLY's draw: a type that is not its own; the slot is the position in the list."""
    drawn = source.pick(AT_POLY + slots(kind[0]), OTHER_KINDS)
    return drawn + (drawn >= kind)


def _most_hp(kind: Array) -> Array:
    """The HP of a fresh enemy of a type: a daemon has one more."""
    usual = min(MAX_HP)
    return usual + (kind == DAEMON)
