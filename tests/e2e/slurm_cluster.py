"""A real Slurm on this machine: munged, slurmctld and a slurmd for each node, with files in one folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIG = """
ClusterName=operant
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=60
{nodes}
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str:
    """Why there can be no cluster here; empty if there can."""
    absent = [name for name in DAEMONS if shutil.which(name, path=_search_path()) is None]
    if absent:
        return f"no {', '.join(absent)}: apt-get install slurm-wlm"
    return "" if os.geteuid() == 0 else "Slurm's daemons want to be root"


@contextmanager
def cluster(folder: Path, nodes: int = 1) -> Iterator[Path]:
    """Start it and give the path of its configuration, which SLURM_CONF names; each node has four CPUs."""
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(parents=True)
    munge, config, host = folder / "munge", folder / "slurm.conf", socket.gethostname().partition(".")[0]
    munge.chmod(0o700)
    (munge / "key").write_bytes(os.urandom(1024))
    (munge / "key").chmod(0o400)
    ports, names = _free_ports(1 + nodes), [f"node{number}" for number in range(nodes)]
    described = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000 State=UNKNOWN"
        for name, port in zip(names, ports[1:], strict=True)
    ]
    config.write_text(CONFIG.format(host=host, folder=folder, ports=ports, nodes="\n".join(described)))
    environment = {**os.environ, "SLURM_CONF": str(config), "PATH": _search_path()}
    places = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
    commands = [
        ["munged", "--foreground", "--force", *(f"--{option}={munge / name}" for option, name in places.items())],
        ["slurmctld", "-D", "-c"],
        *(["slurmd", "-D", "-c", "-N", name] for name in names),
    ]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            daemons.append(
                subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            time.sleep(1)
        _await_nodes(environment, nodes)
        yield config
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(20)


def _await_nodes(environment: dict[str, str], count: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = subprocess.run(
            ["sinfo", "-h", "-N", "-p", "low", "-o", "%T"], env=environment, capture_output=True, text=True, check=False
        )
        if told.stdout.split() == ["idle"] * count:
            return
        time.sleep(0.5)
    raise AssertionError(f"the nodes did not come up: {told.stdout} {told.stderr}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _search_path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
