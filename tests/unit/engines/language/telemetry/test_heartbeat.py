"""A stall is told once and names who waits for whom; a trainer that waits in vain is stopped."""

from __future__ import annotations

import time

import pytest

from operant.engines.language.telemetry.heartbeat import STOP_FACTOR, Watch
from operant.errors import RunError


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def watch(told: list[str]) -> Watch:
    return Watch(lambda kind, message: told.append(f"{kind}: {message}"), patience=120)


def test_the_waiting_trainer_names_the_generator_and_its_prompts(watch: Watch, told: list[str]) -> None:
    now = time.monotonic()
    with (
        watch.pulse("trainer").busy("waiting for groups", "generator"),
        watch.pulse("generator").busy("writing 8 prompts from copy/train/7 on"),
    ):
        watch.look(now + 60)
        assert not told
        watch.look(now + 130)
        watch.look(now + 140)
        assert told == [
            "stall: the trainer has waited 130 s for the generator, which has been writing 8 prompts from "
            "copy/train/7 on for 130 s (waiting for groups)",
            "stall: the generator has been writing 8 prompts from copy/train/7 on for 130 s, without a sign of life "
            "for 130 s",
        ]
        watch.check()
        watch.look(now + 120 * STOP_FACTOR + 10)
        with pytest.raises(RunError, match="the trainer has waited 610 s for the generator"):
            watch.check()


def test_signs_of_life_of_the_other_are_no_stall(watch: Watch, told: list[str]) -> None:
    now = time.monotonic()
    generator = watch.pulse("generator")
    with watch.pulse("trainer").busy("waiting for groups", "generator"), generator.busy("writing"):
        generator.last = now + 5000
        watch.look(now + 5060)
    watch.look(now + 9000)
    watch.check()
    assert not told


def test_the_watcher_looks_by_itself(told: list[str]) -> None:
    watch = Watch(lambda kind, message: told.append(message), patience=0.05)
    watch.start()
    with watch.pulse("trainer").busy("waiting for groups", "generator"):
        time.sleep(1.0)
    watch.close()
    with pytest.raises(RunError, match="does nothing"):
        watch.check()
    assert len(told) == 1
