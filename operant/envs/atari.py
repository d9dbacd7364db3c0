"""Atari games (ALE v5) in native threads, with the emulator's own preprocessing, restarted by seed.

Sticky actions, frame skip, noop starts and the rest of Machado et al. (2018) are on as in `ALE/*-v5`.
Rewards are the game's own; `env.clip_reward` limits what is learnt from, never the score. With
`life_loss_info` a lost life ends the episode for the learner alone: the game goes on, and so does
its score. A game without lives is simply one episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from operant.envs.cores import cores_here
from operant.envs.find import find
from operant.envs.vector.base import Outcome, VectorEnv
from operant.errors import UsageError

if TYPE_CHECKING:
    from operant.spec.settings.sections import EnvSpec

FULL_TILT = np.ones(1, np.float32)  # of the joystick, which only continuous actions move by less
DRAWN_SIDE = 420  # pixels of a video: the agent's own view is too small to watch


@dataclass(frozen=True)
class Setting:
    """A setting of the emulator that `env.kwargs` may change."""

    default: bool | int | float
    low: float = 0
    high: float = 1

    def refusal(self, value: Any) -> str | None:
        """What is wrong with `value`; None when nothing is."""
        if isinstance(self.default, bool) or isinstance(value, bool):
            return None if isinstance(self.default, bool) and isinstance(value, bool) else self._wanted()
        kinds = (int, float) if isinstance(self.default, float) else (int,)
        fits = isinstance(value, kinds) and self.low <= value <= self.high
        return None if fits else self._wanted()

    def _wanted(self) -> str:
        if isinstance(self.default, bool):
            return "true or false"
        kind = "a number" if isinstance(self.default, float) else "a whole number"
        return f"{kind} from {self.low:g} to {self.high:g}"


SETTINGS = {
    "repeat_action_probability": Setting(0.25),
    "frameskip": Setting(4, 1, 1000),
    "max_num_frames_per_episode": Setting(108_000, 1, 10**9),
    "full_action_space": Setting(False),
    "img_height": Setting(84, 8, 512),
    "img_width": Setting(84, 8, 512),
    "grayscale": Setting(True),
    "stack_num": Setting(4, 1, 64),
    "maxpool": Setting(True),
    "noop_max": Setting(30, 0, 1000),
    "use_fire_reset": Setting(True),
    "life_loss_info": Setting(False),
}
ELSEWHERE = {
    "reward_clipping": "-s env.clip_reward=1    (scores stay the game's own)",
    "episodic_life": "-s env.kwargs.life_loss_info=true    (the game goes on, and scores are of whole games)",
}


class Game:
    """One emulator on a thread of its own, so that many can be sent an action before any is asked for its outcome."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        rom = find(name).kwargs["game"]
        from ale_py import ALEInterface, LoggerMode
        from ale_py.vector_env import AtariVectorEnv

        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._native = AtariVectorEnv(rom, 1, num_threads=1, reward_clipping=False, **options)
        self.action_space = self._native.single_action_space
        self.observation_space = self._native.single_observation_space

    def reset(self, seed: int) -> tuple[np.ndarray, int]:
        """Begin a new game; its first observation and its lives."""
        obs, info = self._native.reset(seed=np.array([seed]))
        return obs[0], int(info["lives"][0])

    def send(self, action: int) -> None:
        """Let the emulator play one action."""
        self._native.ale.send(np.array([action]), FULL_TILT)

    def receive(self) -> tuple[Any, ...]:
        """What the action led to: observation, reward, terminated, truncated (each of one game) and info."""
        return self._native.ale.recv()

    def close(self) -> None:
        self._native.close()


class AtariVectorEnv(VectorEnv):
    """Games stepped side by side, each in its native thread.

    A seeded restart reloads the cartridge, which takes as long as hundreds of steps. The seed of
    the next game is known beforehand, so a spare emulator is made ready for it meanwhile and takes
    the place of the finished one.
    """

    prefetches_resets = True

    def __init__(self, spec: EnvSpec, num: int) -> None:
        options = _options(spec)
        self.num = num
        self._ends_lives = bool(options.pop("life_loss_info"))
        self._make = lambda: Game(spec.name, options)
        self._pool = ThreadPoolExecutor(max_workers=cores_here(), thread_name_prefix="atari")
        self._games: list[Game] = list(self._pool.map(lambda _: self._make(), range(num)))
        self._spare: dict[int, Game] = {}
        self._ready: dict[int, tuple[int, Future[tuple[np.ndarray, int]]]] = {}
        self.action_space = self._games[0].action_space
        self.observation_space = self._games[0].observation_space
        assert self.observation_space.shape is not None, "a screen has a shape"
        self.obs_shape, self.obs_dtype = self.observation_space.shape, np.dtype(np.uint8)
        self.stack = self.obs_shape[0]
        self._shown: list[np.ndarray] = [np.zeros(self.obs_shape, np.uint8)] * num
        self._lives = np.zeros(num, np.int64)

    def reset(self, index: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        return self.reset_many({index: seed})[index]

    def reset_many(self, seeds: Mapping[int, int]) -> dict[int, tuple[np.ndarray, np.ndarray | None]]:
        firsts = {i: first for i, seed in seeds.items() if (first := self._prepared(i, seed)) is not None}
        others = [i for i in seeds if i not in firsts]
        firsts |= zip(others, self._pool.map(lambda i: self._games[i].reset(seeds[i]), others), strict=True)
        for i, (obs, lives) in firsts.items():
            self._shown[i], self._lives[i] = obs, lives
        return {i: (obs, None) for i, (obs, _) in firsts.items()}

    def _prepared(self, index: int, seed: int) -> tuple[np.ndarray, int] | None:
        """The beginning of the game made ready for this seed, in the emulator played from now on; None without one."""
        prepared_seed, ready = self._ready.pop(index, (None, None))
        if ready is None:
            return None
        first = ready.result()
        if prepared_seed != seed:
            return None
        self._games[index], self._spare[index] = self._spare[index], self._games[index]
        return first

    def prefetch_reset(self, index: int, seed: int) -> None:
        self._ready[index] = seed, self._pool.submit(self._prepare, index, seed)

    def _prepare(self, index: int, seed: int) -> tuple[np.ndarray, int]:
        if index not in self._spare:
            self._spare[index] = self._make()
        return self._spare[index].reset(seed)

    def step(self, actions: list[Any], playing: np.ndarray | None = None) -> Outcome:
        self.send(actions, playing)
        return self.receive()

    def send(self, actions: list[Any], playing: np.ndarray | None = None) -> None:
        self._sent_to = list(range(self.num)) if playing is None else np.flatnonzero(playing).tolist()
        for i in self._sent_to:
            self._games[i].send(actions[i])

    def receive(self) -> Outcome:
        obs, reward, ended, cut, lives = self._received()
        lost, self._lives = lives < self._lives, lives
        over = ended | cut
        if self._ends_lives:
            ended = ended | (lost & ~cut)
        return Outcome(obs, reward, ended, cut, over, None)

    def _received(self) -> tuple[np.ndarray, ...]:
        """Observation, reward, terminated, truncated and lives of every game; one that waits keeps what it shows."""
        rows = [(*row, info["lives"]) for *row, info in (self._games[i].receive() for i in self._sent_to)]
        for i, row in zip(self._sent_to, rows, strict=True):
            self._shown[i] = row[0][0]
        if len(rows) == self.num:
            obs, reward, *others = (np.concatenate(column) for column in zip(*rows, strict=True))
            return obs, reward.astype(np.float64), *others
        none = np.zeros(self.num, bool)
        columns = (np.stack(self._shown), np.zeros(self.num), none, none.copy(), self._lives.copy())
        for i, row in zip(self._sent_to, rows, strict=True):
            for column, value in zip(columns[1:], row[1:], strict=True):
                column[i] = value[0]
        return columns

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for game in (*self._games, *self._spare.values()):
            game.close()


class AtariEnv(gym.Env[np.ndarray, int]):
    """One game as a Gymnasium environment, for a video of what the agent sees."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 15}

    def __init__(self, spec: EnvSpec, render_mode: str | None = None) -> None:
        self._vector = AtariVectorEnv(spec, 1)
        self.action_space = self._vector.action_space
        self.observation_space = self._vector.observation_space
        self.render_mode = render_mode
        self._seen = np.zeros(self._vector.obs_shape, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed, options=options)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        self._seen, _ = self._vector.reset(0, chosen)
        return self._seen, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        out = self._vector.step([action])
        self._seen = out.obs[0]
        ended = bool(out.over[0] and not out.truncated[0])
        return self._seen, float(out.reward[0]), ended, bool(out.truncated[0]), {}

    def render(self) -> np.ndarray:
        """The newest frame of the agent's view, enlarged."""
        newest = self._seen[-1]
        colour = newest if newest.ndim == 3 else np.repeat(newest[..., None], 3, -1)
        times = max(1, DRAWN_SIDE // max(colour.shape[:2]))
        return colour.repeat(times, 0).repeat(times, 1)

    def close(self) -> None:
        self._vector.close()


def _options(spec: EnvSpec) -> dict[str, Any]:
    """Every setting of the emulator, each checked."""
    for name, value in spec.kwargs.items():
        if name in ELSEWHERE:
            raise UsageError(f"env.kwargs.{name} is not how it is set here", remedy=ELSEWHERE[name])
        if name not in SETTINGS:
            near = get_close_matches(name, SETTINGS, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"one of {', '.join(SETTINGS)}"
            raise UsageError(f"env.kwargs.{name}: {spec.name} has no such setting", remedy=remedy)
        wanted = SETTINGS[name].refusal(value)
        if wanted is not None:
            raise UsageError(f"env.kwargs.{name} = {value!r} does not fit", remedy=f"give {wanted}")
    options = {name: setting.default for name, setting in SETTINGS.items()} | spec.kwargs
    if spec.max_t is not None:
        options["max_num_frames_per_episode"] = spec.max_t * options["frameskip"]
    return options
