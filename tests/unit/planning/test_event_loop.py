"""The event loop against times that can be counted by hand."""

from __future__ import annotations

import pytest

from operant.planning.event_loop import EventLoop, Interrupted, Signal, Steps, Work


def finish_times(cores: float, works: list[Work], background: float = 0.0) -> list[float]:
    """When each of several tasks that begin together is done."""
    loop, ends = EventLoop(cores, background), [0.0] * len(works)

    def task(index: int) -> Steps:
        yield works[index]
        ends[index] = loop.now

    for index in range(len(works)):
        loop.start(task(index))
    loop.run(lambda: False)
    return ends


def compute(seconds: float, width: int = 1) -> Work:
    return Work(seconds, "part", "compute", width)


def test_with_cores_for_all_nobody_waits() -> None:
    assert finish_times(2, [compute(3), compute(5)]) == [3, 5]


def test_tasks_share_a_core_alike() -> None:
    # Both run at half speed until the short one is done at 2, and the long one has 2 seconds left.
    assert finish_times(1, [compute(1), compute(3)]) == pytest.approx([2, 4])


def test_a_task_of_two_threads_counts_twice() -> None:
    assert finish_times(2, [compute(2, width=2), compute(2)]) == pytest.approx([3, 3])


def test_waiting_takes_no_core() -> None:
    assert finish_times(1, [compute(2), Work(2, "part", "wait", on_cores=False)]) == pytest.approx([2, 2])


def test_other_programs_take_their_share() -> None:
    assert finish_times(2, [compute(1)], background=3) == pytest.approx([2])


def test_busy_time_counts_devices() -> None:
    loop = EventLoop()

    def task() -> Steps:
        yield Work(2, "trainers", "train", width=4)
        yield Work(1, "trainers", "wait", on_cores=False)

    loop.start(task())
    loop.run(lambda: False)
    assert loop.busy == {("trainers", "train"): 8, ("trainers", "wait"): 1}


def test_a_signal_wakes_as_many_as_it_says() -> None:
    loop, signal, woken = EventLoop(), Signal(), []

    def waits(name: str) -> Steps:
        yield signal
        woken.append((name, loop.now))

    def tells() -> Steps:
        yield compute(1)
        loop.notify(signal, 1)
        yield compute(1)
        loop.notify(signal)

    for name in "abc":
        loop.start(waits(name))
    loop.start(tells())
    loop.run(lambda: False)
    assert woken == [("a", 1), ("b", 2), ("c", 2)]


def test_what_is_interrupted_frees_its_core() -> None:
    loop, ends = EventLoop(1), {}

    def victim() -> Steps:
        try:
            yield compute(10)
        except Interrupted:
            ends["victim"] = loop.now

    def other() -> Steps:
        yield compute(4)
        ends["other"] = loop.now

    def killer() -> Steps:
        yield Work(2, "clock", "wait", on_cores=False)
        loop.interrupt(task)

    task = loop.start(victim())
    loop.start(other())
    loop.start(killer())
    loop.run(lambda: False)
    # Until 2 both had half the core; then the other one has it to itself for the 3 seconds that it lacks.
    assert ends == pytest.approx({"victim": 2, "other": 5})
