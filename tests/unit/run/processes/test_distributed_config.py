"""Which process of how many: by the command line, by Operant's variables and by torchrun's."""

from __future__ import annotations

import pytest

from operant.errors import UsageError
from operant.run.processes.distributed_config import DistributedConfig, distributed_config, requested_config

TORCHRUN = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "RANK": "3"}


def test_the_command_line_says_it_to_the_processes_that_it_starts() -> None:
    environment: dict[str, str] = {}
    found = requested_config("host-a:1234", 2, 1, 20, environment)
    assert found == DistributedConfig("host-a", 1234, 2, 1, 20)
    assert distributed_config(environment) == found


def test_torchruns_variables_say_it_and_its_own_port_is_left_to_it() -> None:
    environment = dict(TORCHRUN)
    found = requested_config(None, None, None, None, environment)
    assert found == DistributedConfig("10.0.0.1", 29501, 4, 3)
    assert distributed_config(environment) == found
    assert distributed_config(TORCHRUN) is None, "a session listens to Operant's variables only"


@pytest.mark.parametrize("environment", [{}, {**TORCHRUN, "WORLD_SIZE": "1", "RANK": "0"}, {"RANK": "1"}])
def test_a_process_alone(environment: dict[str, str]) -> None:
    before = dict(environment)
    assert requested_config(None, None, None, None, environment) is None
    assert environment == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("host:1", 2, None), "--process-id is missing"),
        ((None, 2, 0), "--coordinator-address is missing"),
        (("host", 2, 0), "--coordinator-address: 'host' is no address"),
        (("host:http", 2, 0), "the port of --coordinator-address: 'http' is no number"),
        (("host:1", 2, 2), "--process-id: '2' is no number from 0 to 1"),
        (("host:1", 0, 0), "--num-processes: '0' is no number from 1"),
    ],
)
def test_what_is_wrong_is_named(given: tuple[str | None, int | None, int | None], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        requested_config(*given, None, {})
    assert refused.value.cause.startswith(told)


def test_torchruns_nonsense_is_named_too() -> None:
    with pytest.raises(UsageError, match=r"RANK: '7' is no number from 0 to 3"):
        requested_config(None, None, None, None, {**TORCHRUN, "RANK": "7"})
