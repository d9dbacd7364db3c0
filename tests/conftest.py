"""Which tests share a worker: those of one contract case and of one file share what they train and compile."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# The processes of the tests need not all compile the same programs, however small.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"operant-jax-{os.getuid()}"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

# A busy machine is no fault of the code that is tested.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(autouse=True, scope="session")
def _given_secret(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Hidden seeds are the same in every run of the tests, and nobody's own secret is used or made."""
    file: Path = tmp_path_factory.mktemp("secret") / "grading"
    file.write_text("a secret for tests, the same every time")
    file.chmod(0o600)
    os.environ["OPERANT_SECRET_FILE"] = str(file)


@pytest.fixture(autouse=True)
def _own_arithmetic() -> Iterator[None]:
    """A session rounds denormal numbers to zero in its process; the tests that come after one are not to."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than cores: the tests wait for processes that they start for nearly half of their time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Scheduling by `scope_of`. The marks of `--dist=loadgroup` have no effect with pytest 9.2 and xdist 3.8."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Scheduling(config, log)


def scope_of(nodeid: str) -> str:
    """The tests that go to one worker: a contract case's, which is the last parameter; a file's; a single learner."""
    file, _, test = nodeid.partition("::")
    if "tests/contract/" in file and test.endswith("]"):
        return test.rpartition("[")[2]
    if "hackmatrix/test_rules" in file:
        return "the compiled game"
    return nodeid if "tests/learn/" in file else file
