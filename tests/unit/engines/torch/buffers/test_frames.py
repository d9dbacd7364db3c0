"""Frame replay: what is sampled equals what was seen, whatever the episodes, lives, steps ahead and priorities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from operant.engines.torch.buffers.frames import FrameReplay
from operant.spec.settings.memories import PrioritisedReplaySpec, ReplaySpec

STACK, NUM, GAMMA = 4, 3, 0.9
ACTION = np.zeros((), np.int64)


class Film:
    """Environments whose frames are all different, with lost lives, game ends and time limits; remembers every step."""

    def __init__(self, seed: int, stack: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.stack = stack
        self.made = 0
        self.obs = np.stack([self.first() for _ in range(NUM)])
        self.steps: list[list[dict[str, Any]]] = [[] for _ in range(NUM)]

    def frame(self) -> np.ndarray:
        self.made += 1
        return np.array([self.made % 251, self.made // 251, 7], np.uint8)

    def first(self) -> np.ndarray:
        return np.stack([self.frame() for _ in range(self.stack)]) if self.stack > 1 else self.frame()

    def step(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Rows, truncated and over of one step of every environment."""
        dice = self.rng.random(NUM)
        lost, truncated, over = dice < 0.1, (dice >= 0.1) & (dice < 0.15), (dice >= 0.05) & (dice < 0.15)
        new = [self.frame() for _ in range(NUM)]
        shifted = [
            np.concatenate([o[1:], f[None]]) if self.stack > 1 else f for o, f in zip(self.obs, new, strict=True)
        ]
        rows = {
            "obs": self.obs,
            "action": self.rng.integers(5, size=NUM),
            "reward": self.rng.normal(size=NUM).astype(np.float32),
            "next_obs": np.stack(shifted),
            "terminated": lost,
        }
        for i in range(NUM):
            self.steps[i].append({**{k: v[i] for k, v in rows.items()}, "end": bool(lost[i] | truncated[i])})
        self.obs = np.stack([self.first() if over[i] else rows["next_obs"][i] for i in range(NUM)])
        return rows, truncated, over

    def joined(self, n: int) -> dict[bytes, tuple[np.ndarray, int, float, np.ndarray, bool, float]]:
        """Every transition that looks `n` steps ahead, by its observation; the last ones wait for more steps."""
        found = {}
        for steps in self.steps:
            for t, first in enumerate(steps):
                reward, discount, k = 0.0, 1.0, t
                while k < len(steps):
                    reward, discount = reward + discount * float(steps[k]["reward"]), discount * GAMMA
                    if steps[k]["end"] or k - t == n - 1:
                        last = steps[k]
                        row = (first["obs"], first["action"], reward, last["next_obs"], last["terminated"], discount)
                        found[first["obs"].tobytes()] = row
                        break
                    k += 1
        return found


def recorded(spec: ReplaySpec | PrioritisedReplaySpec, stack: int, n: int, steps: int) -> tuple[FrameReplay, Film]:
    film = Film(0, stack)
    shape = (stack, 3) if stack > 1 else (3,)
    replay = FrameReplay(spec, NUM, shape, stack, ACTION, n, GAMMA)
    for _ in range(steps):
        replay.record(*film.step())
    return replay, film


@pytest.mark.parametrize("steps", [20, 200])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("stack", [1, 4])
@pytest.mark.parametrize("kind", [ReplaySpec, PrioritisedReplaySpec])
def test_every_sample_is_a_transition_that_was_seen(kind, stack, n, steps):
    replay, film = recorded(kind(batch_size=256, max_size=NUM * 60), stack, n, steps)
    seen = film.joined(n)
    batch = replay.sample(np.random.default_rng(1), beta=0.4)
    for k in range(len(batch.index)):
        obs, action, reward, next_obs, terminated, discount = seen[batch.obs[k].tobytes()]
        assert np.array_equal(batch.obs[k], obs)
        assert batch.action[k] == action
        assert batch.reward[k] == pytest.approx(reward, rel=1e-5)
        assert np.array_equal(batch.next_obs[k], next_obs)
        assert batch.terminated[k] == terminated
        if n > 1:
            assert batch.discount is not None
            assert batch.discount[k] == pytest.approx(discount)


def test_before_the_ring_is_full_every_completed_transition_is_drawn_and_no_other():
    replay, film = recorded(ReplaySpec(batch_size=4000, max_size=NUM * 500), STACK, 3, 60)
    batch = replay.sample(np.random.default_rng(1), beta=0.0)
    assert {row.tobytes() for row in batch.obs} == set(film.joined(3))
    assert replay.filled == len(film.joined(3))


def test_a_full_ring_keeps_the_newest():
    replay, film = recorded(ReplaySpec(batch_size=4000, max_size=NUM * 40), STACK, 1, 300)
    drawn = {row.tobytes() for row in replay.sample(np.random.default_rng(1), beta=0.0).obs}
    newest = {step["obs"].tobytes() for steps in film.steps for step in steps[-10:]}
    oldest = {step["obs"].tobytes() for steps in film.steps for step in steps[:250]}
    assert newest <= drawn
    assert not drawn & oldest
    assert replay.filled == len(drawn)


def test_every_frame_is_stored_once():
    replay = FrameReplay(ReplaySpec(max_size=1000), 4, (4, 84, 84), 4, ACTION)
    assert replay.nbytes < 1000 * 84 * 84 * 1.01


def test_the_newest_transition_is_in_every_combined_batch():
    replay, film = recorded(ReplaySpec(batch_size=2, max_size=NUM * 60, combined=True), STACK, 1, 30)
    batch = replay.sample(np.random.default_rng(1), beta=0.0)
    assert np.array_equal(batch.obs[-1], film.steps[-1][-1]["obs"])


@pytest.mark.parametrize("kind", [ReplaySpec, PrioritisedReplaySpec])
@pytest.mark.parametrize("steps", [15, 150])
def test_restored_it_goes_on_as_before(kind, steps):
    spec = kind(batch_size=32, max_size=NUM * 60)
    replay, film = recorded(spec, STACK, 3, steps)
    twin = FrameReplay(spec, NUM, (STACK, 3), STACK, ACTION, 3, GAMMA)
    frozen = {name: array.copy() for name, array in replay.state().items()}
    for array in frozen.values():
        array.flags.writeable = False
    twin.restore(frozen)
    for _ in range(50):
        rows = film.step()
        replay.record(*rows)
        twin.record(*rows)
    ours, theirs = (each.sample(np.random.default_rng(2), beta=0.4) for each in (replay, twin))
    assert np.array_equal(ours.index, theirs.index)
    assert np.array_equal(ours.obs, theirs.obs)
    assert all(np.array_equal(array, twin.state()[name]) for name, array in replay.state().items())


def test_large_errors_are_drawn_more_often():
    replay, _ = recorded(PrioritisedReplaySpec(batch_size=64, max_size=NUM * 60, alpha=1.0), STACK, 1, 100)
    assert replay.priorities is not None
    all_slots = np.flatnonzero(replay.state()["ready"].reshape(-1))
    replay.priorities.update(all_slots, np.full(len(all_slots), 1e-3))
    replay.priorities.update(all_slots[:1], np.array([10.0]))
    batch = replay.sample(np.random.default_rng(3), beta=1.0)
    assert (batch.index == all_slots[0]).mean() > 0.9
