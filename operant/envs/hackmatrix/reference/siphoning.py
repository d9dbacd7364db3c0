"""Siphoning the cross around the player, and how much better another place would have been."""

from __future__ import annotations

from typing import NamedTuple

from operant.envs.hackmatrix.constants import MIN_INTERVAL, SIPHON_DELAY
from operant.envs.hackmatrix.reference.board import BOARD, CROSS
from operant.envs.hackmatrix.reference.moves import Deed
from operant.envs.hackmatrix.reference.state import Block, Cell, Player, State


def siphon(state: State) -> Deed | None:
    """Take all that the cross offers; None without a data siphon."""
    player = state.player
    if player.siphons <= 0:
        return None
    missed = missed_resources(state)
    state.cells[player.at] = state.cells[player.at]._replace(centre=True)
    for at in CROSS[player.at]:
        if not state.cells[at].siphoned:
            state.cells[at] = _drain(state, state.cells[at])
    player.siphons -= 1
    state.interval = max(MIN_INTERVAL, state.interval - 1)
    state.next_task += SIPHON_DELAY
    return Deed(ends_turn=True, missed=missed)


def _drain(state: State, cell: Cell) -> Cell:
    """Give the player what the cell holds; the cell as it is afterwards."""
    if cell.block is None:
        _collect(state.player, cell)
        return cell._replace(credits=0, energy=0, siphoned=True)
    _open_block(state, cell.block)
    return cell._replace(content=cell.block._replace(spawn=0, question=False), siphoned=True)


def _collect(player: Player, cell: Cell) -> None:
    player.credits += cell.credits
    player.energy += cell.energy


def _open_block(state: State, block: Block) -> None:
    state.pending += block.spawn
    if block.program is None:
        state.player.score += block.points
    elif block.program not in state.owned:
        state.owned.append(block.program)


class Yield(NamedTuple):
    """What siphoning from some cell would give; points are sorted, so equal multisets are equal."""

    credits: int = 0
    energy: int = 0
    points: tuple[int, ...] = ()
    programs: frozenset[int] = frozenset()


def missed_resources(state: State) -> tuple[int, int]:
    """Credits and energy by which the better places exceed the player's, each at its largest."""
    own = yield_at(state, state.player.at)
    offers = [yield_at(state, place) for place in _comparable(state, own)]
    better = [offer for offer in offers if _is_better(offer, own)]
    credit = max((offer.credits for offer in better), default=own.credits)
    energy = max((offer.energy for offer in better), default=own.energy)
    return credit - own.credits, energy - own.energy


def yield_at(state: State, at: int) -> Yield:
    """The yield of a cell; a block yields nothing."""
    if state.cells[at].block:
        return Yield()
    fresh = [state.cells[other] for other in CROSS[at] if not state.cells[other].siphoned]
    blocks = [cell.block for cell in fresh if cell.block]
    return Yield(
        credits=sum(cell.credits for cell in fresh if not cell.block),
        energy=sum(cell.energy for cell in fresh if not cell.block),
        points=tuple(sorted(block.points for block in blocks if block.program is None)),
        programs=frozenset(b.program for b in blocks if b.program is not None and b.program not in state.owned),
    )


def _comparable(state: State, own: Yield) -> list[int]:
    """Cells to compare with: any, but where own has data or programs only those beside the same blocks."""
    open_cells = [at for at in BOARD if not state.cells[at].block]
    if not (own.points or own.programs):
        return open_cells
    cross = CROSS[state.player.at]
    blocks = {at for at in cross if state.cells[at].block and not state.cells[at].siphoned}
    return [at for at in open_cells if blocks.issubset(CROSS[at])]


def _is_better(offer: Yield, own: Yield) -> bool:
    if (offer.points, offer.programs) != (own.points, own.programs):
        return False
    at_least = offer.credits >= own.credits and offer.energy >= own.energy
    return at_least and (offer.credits > own.credits or offer.energy > own.energy)
