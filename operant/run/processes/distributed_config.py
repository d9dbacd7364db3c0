"""Which process of how many this one is, as its environment or the command line says.

The words are those of `jax.distributed.initialize`; torchrun's variables say the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from operant.errors import UsageError

ADDRESS_VARIABLE = "OPERANT_COORDINATOR_ADDRESS"
NUMBER_VARIABLE = "OPERANT_NUM_PROCESSES"
ID_VARIABLE = "OPERANT_PROCESS_ID"
TIMEOUT_VARIABLE = "OPERANT_INITIALIZATION_TIMEOUT"
TORCHRUN_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
INITIALIZATION_SECONDS = 300.0
MOST_PROCESSES = 1024
FLAGS = {"coordinator_address": ADDRESS_VARIABLE, "num_processes": NUMBER_VARIABLE, "process_id": ID_VARIABLE}


@dataclass(frozen=True)
class DistributedConfig:
    """The processes of one session, of which this is number `process_id`.

    Process 0 leads: it listens at `host` and `port`, holds the run directory and writes; the others compute.
    """

    host: str
    port: int
    num_processes: int
    process_id: int
    initialization_timeout: float = INITIALIZATION_SECONDS

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes."""
        return self.process_id == 0

    @property
    def address(self) -> str:
        """Where the leader listens."""
        return f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether all processes are on this machine."""
        return self.host in ("localhost", "127.0.0.1", "::1")

    def export(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Say it to the processes that this one starts."""
        environment[ADDRESS_VARIABLE] = self.address
        environment[NUMBER_VARIABLE] = str(self.num_processes)
        environment[ID_VARIABLE] = str(self.process_id)
        environment[TIMEOUT_VARIABLE] = str(self.initialization_timeout)


def distributed_config(environment: Mapping[str, str] = os.environ) -> DistributedConfig | None:
    """What Operant's own variables say; None where this process is alone."""
    said = {flag: environment.get(variable) for flag, variable in FLAGS.items()}
    return _config(said, FLAGS, environment.get(TIMEOUT_VARIABLE))


def requested_config(
    coordinator_address: str | None,
    num_processes: int | None,
    process_id: int | None,
    initialization_timeout: float | None,
    environment: MutableMapping[str, str] = os.environ,
) -> DistributedConfig | None:
    """What the command line says, else Operant's variables, else torchrun's; None where this process is alone.

    It is exported: the session that this process starts reads Operant's variables only.
    """
    flags = {"coordinator_address": coordinator_address, "num_processes": num_processes, "process_id": process_id}
    given = {flag: None if value is None else str(value) for flag, value in flags.items()}
    seconds = environment.get(TIMEOUT_VARIABLE) if initialization_timeout is None else str(initialization_timeout)
    if any(value is not None for value in given.values()):
        found = _config(given, {flag: f"--{flag.replace('_', '-')}" for flag in FLAGS}, seconds)
    elif any(environment.get(variable) for variable in FLAGS.values()):
        found = distributed_config(environment)
    else:
        found = _torchrun_config(environment, seconds)
    if found is not None:
        found.export(environment)
    return found


def _torchrun_config(environment: Mapping[str, str], seconds: str | None) -> DistributedConfig | None:
    """The leader listens at the port after torchrun's, where torchrun itself listens."""
    if not all(environment.get(name) for name in TORCHRUN_VARIABLES):
        return None
    host, port, size, rank = (environment[name] for name in TORCHRUN_VARIABLES)
    names = {"coordinator_address": "MASTER_PORT", "num_processes": "WORLD_SIZE", "process_id": "RANK"}
    following = str(int(port) + 1) if port.isdigit() else port
    return _config(
        {"coordinator_address": f"{host}:{following}", "num_processes": size, "process_id": rank}, names, seconds
    )


def _config(said: Mapping[str, str | None], names: Mapping[str, str], seconds: str | None) -> DistributedConfig | None:
    if not any(said.values()):
        return None
    missing = [names[flag] for flag, value in said.items() if not value]
    if missing:
        raise UsageError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: several processes need all three"
            f" of {', '.join(names.values())}",
            remedy="operant train SPEC --coordinator-address HOST:PORT --num-processes 2 --process-id 0",
        )
    count = _whole(said["num_processes"], names["num_processes"], 1, MOST_PROCESSES)
    number = _whole(said["process_id"], names["process_id"], 0, count - 1)
    host, _, port = (said["coordinator_address"] or "").rpartition(":")
    if not host:
        raise UsageError(
            f"{names['coordinator_address']}: {said['coordinator_address']!r} is no address",
            remedy="HOST:PORT, where HOST is the machine of process 0 and PORT is free there",
        )
    where = _whole(port, f"the port of {names['coordinator_address']}", 1, 65_535)
    if count == 1:
        return None
    return DistributedConfig(host.strip("[]"), where, count, number, _seconds(seconds))


def _whole(text: str | None, name: str, least: int, most: int) -> int:
    if text is None or not text.strip().isdigit() or not least <= int(text) <= most:
        raise UsageError(f"{name}: {text!r} is no number from {least} to {most}", remedy=f"{name} {least} to {most}")
    return int(text)


def _seconds(text: str | None) -> float:
    try:
        seconds = INITIALIZATION_SECONDS if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**6:
        raise UsageError(f"{TIMEOUT_VARIABLE}: {text!r} is no number of seconds", remedy=f"{TIMEOUT_VARIABLE}=300")
    return seconds
