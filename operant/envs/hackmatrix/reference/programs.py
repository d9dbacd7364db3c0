"""The 23 programs: what each needs and what it does. Costs are paid before the effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from operant.envs.hackmatrix.constants import (
    ANTI_V,
    AT_POLY,
    AT_WARP,
    ATK_PLUS,
    ATK_PLUS_USES,
    CALM,
    COL,
    CRASH,
    CRYPTOG,
    D_BOM,
    DAEMON,
    DEBUG,
    DELAY,
    DELAY_TURNS,
    ENEMIES,
    EXCH,
    EXCH_ENERGY,
    HACK,
    HIT_BY_ANTI_V,
    HIT_BY_BOMB,
    MAX_HP,
    POLY,
    PROGRAMS,
    PULL,
    PUSH,
    REDUC,
    RESET,
    ROW,
    SCORE,
    SHOW,
    SIPH_PLUS,
    SIZE,
    STAGES,
    STEP,
    UNDO,
    VIRUS,
    WAIT,
    WARP,
    WASTE_HP,
)
from operant.envs.hackmatrix.reference.board import EIGHT, manhattan
from operant.envs.hackmatrix.reference.draws import Source
from operant.envs.hackmatrix.reference.moves import Deed, bury, hit, pays, shove
from operant.envs.hackmatrix.reference.state import Enemy, State


def run(state: State, source: Source, program: int) -> Deed | None:
    """Pay for the program and let it take effect; None when it cannot run."""
    if not can_run(state, program):
        return None
    state.player.credits -= PROGRAMS[program].credits
    state.player.energy -= PROGRAMS[program].energy
    return _RULES[program].effect(state, source)


def can_run(state: State, program: int) -> bool:
    """Whether the program is owned, can be paid for, and would find what it needs."""
    cost, player = PROGRAMS[program], state.player
    affordable = player.credits >= cost.credits and player.energy >= cost.energy
    return program in state.owned and affordable and bool(_RULES[program].condition(state))


def _crash(state: State, source: Source) -> Deed:
    kills = 0
    for at in EIGHT[state.player.at]:
        cell = state.cells[at]
        if cell.block:
            state.cells[at] = cell._replace(content="empty")
        kills += _clear_enemies(state, at) + _clear_transmissions(state, at)
    return Deed(kills=kills)


def _clear_enemies(state: State, at: int) -> int:
    """Remove all enemies of a cell; they count once, by the first of them."""
    there = state.enemies_at(at)
    state.enemies = [enemy for enemy in state.enemies if enemy.at != at]
    return int(bool(there) and pays(there[0]))


def _clear_transmissions(state: State, at: int) -> int:
    there = state.transmissions_at(at)
    state.transmissions = [one for one in state.transmissions if one.at != at]
    return int(bool(there) and pays(there[0]))


def _warp(state: State, source: Source) -> Deed:
    targets = [*state.enemies, *state.transmissions]
    target = targets[source.pick(AT_WARP, len(targets))]
    state.player.at = target.at
    clear = _clear_enemies if isinstance(target, Enemy) else _clear_transmissions
    return Deed(kills=clear(state, target.at), reached_exit=target.at == state.exit)


def _poly(state: State, source: Source) -> Deed:
    for i, enemy in enumerate(state.enemies):
        others = [kind for kind in range(len(ENEMIES)) if kind != enemy.kind]
        kind = others[source.pick(AT_POLY + i, len(others))]
        enemy.hp = ENEMIES[kind].max_hp - (ENEMIES[enemy.kind].max_hp - enemy.hp)
        enemy.kind = kind
        if kind == CRYPTOG:
            enemy.seen_at = enemy.at
    return Deed(kills=bury(state))


def _wait(state: State, source: Source) -> Deed:
    return Deed(ends_turn=True)


def _on_blocks(state: State) -> list[Enemy]:
    return [enemy for enemy in state.enemies if state.cells[enemy.at].block]


def _in_row(state: State) -> list[Enemy]:
    return [enemy for enemy in state.enemies if enemy.at // SIZE == state.player.at // SIZE]


def _in_column(state: State) -> list[Enemy]:
    return [enemy for enemy in state.enemies if enemy.at % SIZE == state.player.at % SIZE]


def _on_siphoned(state: State) -> list[Enemy]:
    return [enemy for enemy in state.enemies if state.cells[enemy.at].siphoned]


def _of_kind(state: State, kind: int) -> list[Enemy]:
    return [enemy for enemy in state.enemies if enemy.kind == kind]


def _strike(targets: Callable[[State], list[Enemy]]) -> Callable[[State, Source], Deed]:
    """The effect of hitting all of `targets` with the player's attack."""
    return lambda state, source: Deed(kills=hit(state, targets(state), state.player.attack))


def _undo(state: State, source: Source) -> Deed:
    state.undo()
    return Deed()


def _step(state: State, source: Source) -> Deed:
    state.skip = True
    return Deed()


def _siph_plus(state: State, source: Source) -> Deed:
    state.player.siphons += 1
    return Deed()


def _exch(state: State, source: Source) -> Deed:
    state.player.energy += EXCH_ENERGY
    return Deed()


def _show(state: State, source: Source) -> Deed:
    state.show = True
    return Deed()


def _reset(state: State, source: Source) -> Deed:
    wasted = state.player.hp == WASTE_HP
    state.player.hp = MAX_HP
    return Deed(wasted=wasted)


def _calm(state: State, source: Source) -> Deed:
    state.calm = True
    return Deed()


def _d_bom(state: State, source: Source) -> Deed:
    bomb = min(_of_kind(state, DAEMON), key=lambda daemon: manhattan(daemon.at, state.player.at))
    state.enemies.remove(bomb)
    around = [enemy for enemy in state.enemies if enemy.at in EIGHT[bomb.at]]
    return Deed(kills=pays(bomb) + hit(state, around, HIT_BY_BOMB))


def _delay(state: State, source: Source) -> Deed:
    for one in state.transmissions:
        one.turns += DELAY_TURNS
    return Deed()


def _anti_v(state: State, source: Source) -> Deed:
    return Deed(kills=hit(state, _of_kind(state, VIRUS), HIT_BY_ANTI_V))


def _score(state: State, source: Source) -> Deed:
    state.player.score += STAGES - state.stage
    return Deed()


def _reducible(state: State) -> list[int]:
    """Cells with a block that is neither siphoned nor without spawns."""
    cells = enumerate(state.cells)
    return [at for at, cell in cells if cell.block and not cell.siphoned and cell.block.spawn > 0]


def _reduc(state: State, source: Source) -> Deed:
    for at in _reducible(state):
        cell = state.cells[at]
        assert cell.block is not None
        state.cells[at] = cell._replace(content=cell.block._replace(spawn=cell.block.spawn - 1))
    return Deed()


def _atk_plus(state: State, source: Source) -> Deed:
    state.player.attack += 1
    state.attack_uses += 1
    return Deed()


def _crashable(state: State) -> bool:
    around = EIGHT[state.player.at]
    things = [*state.enemies, *state.transmissions]
    return any(state.cells[at].block for at in around) or any(thing.at in around for thing in things)


class _Rule(NamedTuple):
    """When a program may run, costs apart, and what it does."""

    condition: Callable[[State], object]
    effect: Callable[[State, Source], Deed]


def _always(state: State) -> bool:
    return True


_RULES = {
    PUSH: _Rule(lambda state: state.enemies, lambda state, source: shove(state, away=True)),
    PULL: _Rule(lambda state: state.enemies, lambda state, source: shove(state, away=False)),
    CRASH: _Rule(_crashable, _crash),
    WARP: _Rule(lambda state: state.enemies or state.transmissions, _warp),
    POLY: _Rule(lambda state: state.enemies, _poly),
    WAIT: _Rule(_always, _wait),
    DEBUG: _Rule(_on_blocks, _strike(_on_blocks)),
    ROW: _Rule(_in_row, _strike(_in_row)),
    COL: _Rule(_in_column, _strike(_in_column)),
    UNDO: _Rule(lambda state: state.history, _undo),
    STEP: _Rule(_always, _step),
    SIPH_PLUS: _Rule(_always, _siph_plus),
    EXCH: _Rule(lambda state: state.player.credits >= PROGRAMS[EXCH].credits, _exch),
    SHOW: _Rule(lambda state: not state.show, _show),
    RESET: _Rule(lambda state: state.player.hp < MAX_HP, _reset),
    CALM: _Rule(lambda state: not state.calm, _calm),
    D_BOM: _Rule(lambda state: _of_kind(state, DAEMON), _d_bom),
    DELAY: _Rule(lambda state: state.transmissions, _delay),
    ANTI_V: _Rule(lambda state: _of_kind(state, VIRUS), _anti_v),
    SCORE: _Rule(lambda state: state.stage < STAGES, _score),
    REDUC: _Rule(_reducible, _reduc),
    ATK_PLUS: _Rule(lambda state: state.attack_uses < ATK_PLUS_USES, _atk_plus),
    HACK: _Rule(lambda state: any(cell.siphoned for cell in state.cells), _strike(_on_siphoned)),
}
