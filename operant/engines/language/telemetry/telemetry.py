"""What looks on while a session works: the trace, the account of prompts and the watchdog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from operant.engines.language.telemetry.heartbeat import Watchdog
from operant.engines.language.telemetry.prompt_accounting import PromptAccounting
from operant.engines.language.telemetry.trace import Trace
from operant.run.prompt_journal import PromptJournal

NEVER = 1e9


def _nobody(kind: str, message: str) -> None:
    del kind, message


@dataclass
class Telemetry:
    """The trace, the account of prompts and the watchdog of a session; `tell` reports to people.

    The default records nothing.
    """

    tell: Callable[[str, str], None] = _nobody
    trace: Trace = field(default_factory=Trace)
    patience: float = NEVER
    journal: PromptJournal | None = None
    accounting: PromptAccounting = field(init=False)
    watchdog: Watchdog = field(init=False)

    def __post_init__(self) -> None:
        self.accounting = PromptAccounting(self.trace, self.journal)
        self.watchdog = Watchdog(self.tell, self.patience)

    def __enter__(self) -> Telemetry:
        if self.patience != NEVER:
            self.watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watchdog.close()
        self.accounting.leave()
        self.trace.flush()
