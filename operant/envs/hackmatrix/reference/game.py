"""The game as others use it: new game, one step, the mask, and a state put in its place."""

from __future__ import annotations

from dataclasses import dataclass

from operant.envs.hackmatrix.constants import ACTION_COUNT, FIRST_PROGRAM, SIPHON, STEP_LIMIT
from operant.envs.hackmatrix.reference.board import BESIDE
from operant.envs.hackmatrix.reference.draws import Source, Threefry
from operant.envs.hackmatrix.reference.enemies import enemy_turn
from operant.envs.hackmatrix.reference.moves import Deed, move
from operant.envs.hackmatrix.reference.programs import can_run, run
from operant.envs.hackmatrix.reference.rewards import NOTHING, note, reward_parts
from operant.envs.hackmatrix.reference.siphoning import siphon
from operant.envs.hackmatrix.reference.stages import complete_stage, new_game
from operant.envs.hackmatrix.reference.state import State


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step came to. `truncated` is the time limit, which the JSON-lines face does not have."""

    parts: dict[str, float]
    refused: bool = False
    stage_completed: bool = False
    died: bool = False
    won: bool = False
    truncated: bool = False

    @property
    def reward(self) -> float:
        return sum(self.parts.values())

    @property
    def done(self) -> bool:
        """Whether the episode is over by the rules: terminated, in Gymnasium's word."""
        return self.refused or self.died or self.won


class Game:
    """One game. It starts with a new game of `seed`, or of `source` where a test brings its own."""

    def __init__(self, seed: int | None = None, source: Source | None = None) -> None:
        self.source = source or Threefry(seed)
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Begin a new game; without a seed the draws go on where they are."""
        if seed is not None:
            self.source = Threefry(seed)
        self.state: State = new_game(self.source)
        self.source.event += 1
        self.steps = 0

    def put(self, state: State) -> None:
        """Replace the whole game; the random source stays as it is."""
        self.state = state
        self.steps = 0

    def step(self, action: int) -> Outcome:
        """Carry out an action, or refuse it and change nothing, and let the enemies answer."""
        if not 0 <= action < ACTION_COUNT:
            raise ValueError(f"action {action} is not in 0..{ACTION_COUNT - 1}")
        before = note(self.state)
        deed = self._carry_out(action)
        enemies_acted = won = False
        if deed is not None and deed.reached_exit:
            won = complete_stage(self.state, self.source)
        elif deed is not None and deed.ends_turn:
            enemies_acted = enemy_turn(self.state, self.source)
        self.source.event += 1
        self.steps += 1
        if deed is None:
            return Outcome(NOTHING, refused=True)
        died = self.state.player.hp == 0
        return Outcome(
            reward_parts(before, self.state, deed, enemies_acted=enemies_acted, won=won),
            stage_completed=deed.reached_exit,
            died=died,
            won=won,
            truncated=self.steps >= STEP_LIMIT and not died and not won,
        )

    def _carry_out(self, action: int) -> Deed | None:
        if action < SIPHON:
            return move(self.state, action)
        if action == SIPHON:
            return siphon(self.state)
        return run(self.state, self.source, action - FIRST_PROGRAM)

    def mask(self) -> list[bool]:
        """Which of the 28 actions are offered."""
        directions = [self._may_go(direction) for direction in range(SIPHON)]
        programs = [False] * (ACTION_COUNT - FIRST_PROGRAM)
        for program in self.state.owned:
            programs[program] = can_run(self.state, program)
        return [*directions, self.state.player.siphons > 0, *programs]

    def legal(self) -> list[int]:
        """The offered actions, ascending."""
        return [action for action, offered in enumerate(self.mask()) if offered]

    def _may_go(self, direction: int) -> bool:
        ahead = BESIDE[self.state.player.at][direction]
        return ahead is not None and (not self.state.cells[ahead].block or bool(self.state.enemies_at(ahead)))
