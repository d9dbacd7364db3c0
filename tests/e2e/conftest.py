"""A test that leaves something out says so at the end of every run of the tests, whether it passed or not."""

from __future__ import annotations

from collections import defaultdict

import pytest

NOT_RUN = "not run here"
"""The property that such a test records, once for each thing it leaves out: (place, why)."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was left out, by the reason."""
    places = defaultdict(list)
    for reports in terminalreporter.stats.values():
        for report in (each for each in reports if getattr(each, "when", "") == "call"):
            for place, why in (value for name, value in report.user_properties if name == NOT_RUN):
                places[why].append(place)
    if places:
        terminalreporter.section(NOT_RUN)
    for why in sorted(places):
        terminalreporter.line(f"{why}: {', '.join(places[why])}")
