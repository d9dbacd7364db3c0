"""The enemies' turn: hatching, attacks and moves, the scheduled task, what siphoning has called."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from operant.envs.hackmatrix.constants import (
    AT_ORDER,
    AT_SIPHON_SPAWN,
    AT_TASK,
    CRYPTOG,
    DAEMON,
    GLITCH,
    MAX_HISTORY,
    VIRUS,
)
from operant.envs.hackmatrix.rules.bits import (
    MOVES,
    STEPS,
    Board,
    bit,
    choose,
    col_of,
    full,
    is_empty,
    manhattan,
    row_of,
)
from operant.envs.hackmatrix.rules.draws import Source
from operant.envs.hackmatrix.rules.fusing import compact, fold_or, places, settled, total
from operant.envs.hackmatrix.rules.lists import (
    ENEMY_ALIVE,
    MAX_HP,
    SIGNAL_ALIVE,
    SLOTS,
    Enemies,
    flag,
    read_enemies,
    read_transmissions,
    slots,
    where_they_are,
    write_enemies,
    write_transmissions,
)
from operant.envs.hackmatrix.rules.paths import STAY, toward
from operant.envs.hackmatrix.rules.spawning import Room, room, spawn
from operant.envs.hackmatrix.rules.state import Game, Scene

FAR = 64
NEVER = 127


def enemy_turn(game: Game, due: Array) -> tuple[Game, Array]:
    """Let the enemies act where a turn is due, and say where they did: STEP makes them miss the whole turn."""
    acts = due & ~game.skip
    game = game._replace(skip=game.skip & ~due)
    scene = hatch(game.scene._replace(turn=game.scene.turn + acts), acts)
    scene = move_all(scene, game.source, acts)
    game = call_more(game._replace(scene=scene), acts)
    newest = jnp.where(acts, (game.newest + 1) % MAX_HISTORY, game.newest)
    return game._replace(newest=newest, saved=jnp.minimum(game.saved + acts, MAX_HISTORY)), acts


def hatch(scene: Scene, acts: Array) -> Scene:
    """Transmissions whose time has come join the enemies, the others come a turn nearer. Closes the enemies' ranks."""
    old = read_transmissions(scene.transmissions)
    due = acts & old.alive & (old.turns <= 1)
    fresh = Enemies(
        alive=due,
        kind=old.kind,
        at=old.at,
        hp=min(MAX_HP) + (old.kind == DAEMON),
        last_seen=old.at,
        stunned=jnp.zeros_like(due),
        from_siphon=old.from_siphon,
        from_task=old.from_task,
        disabled=due,
        finished=jnp.zeros_like(due),
    )
    words = settled(jnp.concatenate([scene.enemies, write_enemies(fresh)]))
    left = old._replace(alive=old.alive & ~due, turns=old.turns - acts)
    enemies = compact(words, flag(words, ENEMY_ALIVE), SLOTS)
    return scene._replace(enemies=settled(enemies), transmissions=settled(write_transmissions(left)))


class March(NamedTuple):
    """What the enemies' moves change: the list, and the player's HP.

    `word` is the entry of the enemy that acted last, which is written to the list only when the next
    one acts: if the compiler saw both in one round, it would repeat the search for every slot.
    """

    words: Array
    word: Array
    hp: Array


def move_all(scene: Scene, source: Source, acts: Array) -> Scene:
    """Two sub-steps, in each of which every enemy that still can attacks or moves, one after the other.

    One loop for both: it runs as often as the environment with the most of them needs.
    """
    order, numbers = _orders(read_enemies(scene.enemies), source, acts)
    first, second = numbers[0].max(), numbers[1].max()
    barred = where_they_are(read_transmissions(scene.transmissions))

    def whose(turn: Array) -> Array:
        late = turn >= first
        return jnp.where(late, order[1], order[0]) == jnp.where(late, turn - first, turn)

    def one(turn: Array, march: March) -> March:
        words = jnp.where(whose(turn - 1), march.word, march.words)
        return _act(scene, words, march.hp, whose(turn), barred)

    march = lax.fori_loop(0, first + second, one, March(scene.enemies, jnp.zeros_like(scene.owned), scene.hp))
    words = jnp.where(whose(first + second - 1), march.word, march.words)
    enemies = read_enemies(words)
    rested = enemies._replace(
        stunned=enemies.stunned & ~acts,
        disabled=jnp.zeros_like(enemies.disabled),
        finished=jnp.zeros_like(enemies.finished),
    )
    return scene._replace(enemies=write_enemies(rested), hp=march.hp)


def _orders(enemies: Enemies, source: Source, acts: Array) -> tuple[list[Array], list[Array]]:
    """By sub-step and slot: when an enemy's turn comes, NEVER perhaps; and how many take part in the sub-step.

    Whether a virus has attacked in the first sub-step is not known yet, so it keeps its place in the second.
    """
    index = slots(acts)
    ready = acts & enemies.alive & ~enemies.disabled & ~enemies.stunned
    orders: list[Array] = []
    numbers: list[Array] = []
    for sub_step, acting in enumerate([ready, ready & (enemies.kind == VIRUS)]):
        priority = settled(source.u32(AT_ORDER + SLOTS * sub_step + index))
        orders.append(jnp.where(acting, places(priority, acting), NEVER))
        numbers.append(total(acting))
    return orders, numbers


def _act(scene: Scene, words: Array, hp: Array, mine: Array, barred: Board) -> March:
    """One enemy of every environment, the one marked `mine` if any, attacks or moves."""
    enemies_at = where_they_are(read_enemies(words))
    enemy = read_enemies(fold_or(jnp.where(mine, words, 0)))
    active = enemy.alive & ~enemy.finished
    attacks = active & (manhattan(enemy.at, scene.at) == 1)
    moves = active & ~attacks
    step = jnp.where(moves, _next_step(scene, enemy, enemies_at | barred), STAY)
    at = enemy.at + step
    in_line = (row_of(at) == row_of(scene.at)) | (col_of(at) == col_of(scene.at))
    noticed = (step != STAY) & (enemy.kind == CRYPTOG) & in_line
    moved = enemy._replace(at=at, last_seen=jnp.where(noticed, at, enemy.last_seen), finished=enemy.finished | attacks)
    return March(words, write_enemies(moved), jnp.maximum(hp - attacks, 0))


def _next_step(scene: Scene, enemy: Enemies, occupied: Board) -> Array:
    """Where an enemy goes that is not adjacent to the player.

    Its own cell may count as occupied here: no path leads back through it.
    """
    ground = choose(enemy.kind == GLITCH, full(), full() - scene.blocks)
    free = ground - occupied
    reachable = free | ground & bit(scene.at)
    ways = Board(jnp.stack([reachable.low, ground.low]), jnp.stack([reachable.high, ground.high]))
    around, through = toward(jnp.stack([enemy.at, enemy.at]), jnp.stack([scene.at, scene.at]), ways)
    through = jnp.where(_is_open(enemy.at, through, free), through, STAY)
    by_path = jnp.where(around != STAY, around, through)
    return jnp.where(by_path != STAY, by_path, _last_resort(enemy.at, scene.at, free))


def _is_open(at: Array, step: Array, free: Board) -> Array:
    return ~is_empty(bit(at + step) & free)


def _last_resort(at: Array, player: Array, free: Board) -> Array:
    """The free neighbour nearest to the player, first in direction order on ties, even if it is farther than now."""
    here = bit(at)
    best, chosen = jnp.full_like(at, FAR), jnp.full_like(at, STAY)
    for move, step in zip(MOVES, STEPS, strict=True):
        length = manhattan(at + step, player)
        better = ~is_empty(move(here) & free) & (length < best)
        best, chosen = jnp.where(better, length, best), jnp.where(better, step, chosen)
    return chosen


def call_more(game: Game, acts: Array) -> Game:
    """The scheduled task and the pending spawns, one transmission after the other. Closes the transmissions' ranks.

    At most 35 cells are ever free, so 36 places (one for the task) hold all that can appear.
    """
    scene, source = game.scene, game.source
    task = acts & ~scene.calm & (scene.turn >= game.next_task)
    shields = where_they_are(read_enemies(scene.enemies)) | scene.blocks
    start = room(scene.at, shields, where_they_are(read_transmissions(scene.transmissions)))
    pending = jnp.where(acts, game.pending, 0)

    def one(index: Array, carried: tuple[Array, Room]) -> tuple[Array, Room]:
        words, left = carried
        is_task = index == 0
        wanted = jnp.where(is_task, task, pending >= index)
        address = jnp.where(is_task, AT_TASK, AT_SIPHON_SPAWN + 2 * (index - 1))
        word, left = spawn(source, address, wanted, left, (~is_task, is_task))
        return lax.dynamic_update_index_in_dim(words, word, index, 0), left

    rounds = jnp.minimum(1 + pending.max(), SLOTS)
    rounds = jnp.where(task.any() | (pending.max() > 0), rounds, 0)
    called, _ = lax.fori_loop(0, rounds, one, (jnp.zeros_like(scene.transmissions), start))
    words = jnp.concatenate([scene.transmissions, called])
    scene = scene._replace(transmissions=settled(compact(words, flag(words, SIGNAL_ALIVE), SLOTS)))
    return game._replace(
        scene=scene,
        next_task=jnp.where(task, scene.turn + game.interval, game.next_task),
        pending=jnp.where(acts, 0, game.pending),
    )
