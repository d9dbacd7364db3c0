"""Memory that tensors give back stays in the process, where the C library lets it."""

from __future__ import annotations

from operant.run.heap import LARGEST_KEPT, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, MOST_KEPT, keep_large_blocks


class Glibc:
    """Remembers what was set."""

    def __init__(self) -> None:
        self.chosen: dict[int, int] = {}

    def mallopt(self, parameter: int, value: int) -> int:
        self.chosen[parameter] = value
        return 1


def test_both_thresholds_are_raised():
    libc = Glibc()
    assert keep_large_blocks(libc)
    assert libc.chosen == {M_MMAP_THRESHOLD: LARGEST_KEPT, M_TRIM_THRESHOLD: MOST_KEPT}


def test_another_c_library_is_left_alone():
    assert not keep_large_blocks(object())
