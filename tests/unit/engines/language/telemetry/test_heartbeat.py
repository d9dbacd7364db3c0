"""A stall is told once and names who waits for whom; a trainer that waits in vain is stopped."""

from __future__ import annotations

import time

import pytest

from operant.engines.language.telemetry.heartbeat import STOP_FACTOR, Watchdog
from operant.errors import RunError


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def watchdog(told: list[str]) -> Watchdog:
    return Watchdog(lambda kind, message: told.append(f"{kind}: {message}"), patience=120)


def test_the_waiting_trainer_names_the_generator_and_its_prompts(watchdog: Watchdog, told: list[str]) -> None:
    now = time.monotonic()
    with (
        watchdog.heartbeat("trainer").busy("waiting for groups", "generator"),
        watchdog.heartbeat("generator").busy("writing 8 prompts from copy/train/7 on"),
    ):
        watchdog.look(now + 60)
        assert not told
        watchdog.look(now + 130)
        watchdog.look(now + 140)
        assert told == [
            "stall: the trainer has waited 130 s for the generator, which has been writing 8 prompts from "
            "copy/train/7 on for 130 s (waiting for groups)",
            "stall: the generator has been writing 8 prompts from copy/train/7 on for 130 s, without a sign of life "
            "for 130 s",
        ]
        watchdog.check()
        watchdog.look(now + 120 * STOP_FACTOR + 10)
        with pytest.raises(RunError, match="the trainer has waited 610 s for the generator"):
            watchdog.check()


def test_signs_of_life_of_the_other_are_no_stall(watchdog: Watchdog, told: list[str]) -> None:
    now = time.monotonic()
    generator = watchdog.heartbeat("generator")
    with watchdog.heartbeat("trainer").busy("waiting for groups", "generator"), generator.busy("writing"):
        generator.last = now + 5000
        watchdog.look(now + 5060)
    watchdog.look(now + 9000)
    watchdog.check()
    assert not told


def test_the_watcher_looks_by_itself(told: list[str]) -> None:
    watchdog = Watchdog(lambda kind, message: told.append(message), patience=0.05)
    watchdog.start()
    with watchdog.heartbeat("trainer").busy("waiting for groups", "generator"):
        time.sleep(1.0)
    watchdog.close()
    with pytest.raises(RunError, match="does nothing"):
        watchdog.check()
    assert len(told) == 1
