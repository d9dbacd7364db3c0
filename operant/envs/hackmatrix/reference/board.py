"""Geometry of the 36 cells, which are numbered 6 * row + column: neighbours, distances, paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from operant.envs.hackmatrix.constants import CELLS, DELTAS, SIZE


def on_board(row: int, col: int) -> bool:
    """Whether there is a cell in this row and column."""
    return 0 <= row < SIZE and 0 <= col < SIZE


def number(row: int, col: int) -> int:
    """The number of the cell in this row and column."""
    return SIZE * row + col


def place(cell: int) -> tuple[int, int]:
    """The row and column of a cell."""
    return divmod(cell, SIZE)


def _beside(cell: int, delta: tuple[int, int]) -> int | None:
    row, col = cell // SIZE + delta[0], cell % SIZE + delta[1]
    return number(row, col) if on_board(row, col) else None


def _eight(cell: int) -> tuple[int, ...]:
    around = [(row, col) for row in (-1, 0, 1) for col in (-1, 0, 1) if (row, col) != (0, 0)]
    return tuple(other for delta in around if (other := _beside(cell, delta)) is not None)


def _ray(cell: int, delta: tuple[int, int]) -> tuple[int, ...]:
    ray: list[int] = []
    ahead = _beside(cell, delta)
    while ahead is not None:
        ray.append(ahead)
        ahead = _beside(ahead, delta)
    return tuple(ray)


BOARD = range(CELLS)
# By cell and direction: the cell beside it, or None beyond the edge.
BESIDE = tuple(tuple(_beside(cell, delta) for delta in DELTAS) for cell in BOARD)
# The same without the None: up, down, left, right as far as they are on the board.
NEIGHBOURS = tuple(tuple(other for other in row if other is not None) for row in BESIDE)
CROSS = tuple((cell, *NEIGHBOURS[cell]) for cell in BOARD)
EIGHT = tuple(_eight(cell) for cell in BOARD)
# By cell and direction: the cells from beside it to the edge.
RAYS = tuple(tuple(_ray(cell, delta) for delta in DELTAS) for cell in BOARD)


def manhattan(a: int, b: int) -> int:
    """Rows and columns between two cells, walls or not."""
    return abs(a // SIZE - b // SIZE) + abs(a % SIZE - b % SIZE)


def in_line(a: int, b: int) -> bool:
    """Whether two cells share a row or a column."""
    return a // SIZE == b // SIZE or a % SIZE == b % SIZE


def distance(start: int, goal: int, walls: Collection[int]) -> int:
    """Length of the shortest path between walls, 0 when there is none; start and goal may be walls."""
    if start == goal:
        return 0
    seen = {*walls, start}
    seen.discard(goal)
    frontier, length = [start], 0
    while frontier:
        length += 1
        reached: list[int] = []
        for cell in frontier:
            for other in NEIGHBOURS[cell]:
                if other == goal:
                    return length
                if other not in seen:
                    seen.add(other)
                    reached.append(other)
        frontier = reached
    return 0


def first_step(start: int, goal: int, barred: Collection[int]) -> int | None:
    """Where the shortest path begins, breadth first with neighbours in direction order; None without a path.

    A cell of `barred` is not entered, not even the goal; the start is not tested.
    """
    seen = {*barred, start}
    queue = deque((other, other) for other in NEIGHBOURS[start] if other not in seen)
    seen.update(other for other, _ in queue)
    while queue:
        cell, first = queue.popleft()
        if cell == goal:
            return first
        for other in NEIGHBOURS[cell]:
            if other not in seen:
                seen.add(other)
                queue.append((other, first))
    return None
