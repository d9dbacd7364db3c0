"""What runs inside a training job: it joins the hosts by Ray, fetches the run from the store and trains it.

SageMaker's toolkit starts `sagemaker_train.py` of the source on every host, with the variables SM_HOSTS,
SM_CURRENT_HOST and SM_NUM_GPUS, and that starts this module. The first host trains; the others lend it their cores
and GPUs until it is done. The run syncs with the store while it trains: a job that is interrupted continues from there
when it is started again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from operant.launch.sagemaker.request import STORE_VARIABLE

RAY_PORT = 6379
JOIN_SECONDS = 300.0


def hosts(environment: Mapping[str, str]) -> tuple[list[str], str]:
    """All hosts in order, and which of them this is."""
    listed = json.loads(environment.get("SM_HOSTS", "[]")) or ["localhost"]
    return sorted(listed), environment.get("SM_CURRENT_HOST", listed[0])


def ray_command(everyone: Sequence[str], here: str, gpus: int) -> list[str]:
    """How this host starts Ray: the first as head, the others joining it until it ends."""
    own = ["--num-gpus", str(gpus)] if gpus else []
    if here == everyone[0]:
        return ["ray", "start", "--head", f"--port={RAY_PORT}", "--dashboard-host=0.0.0.0", *own]
    return ["ray", "start", f"--address={everyone[0]}:{RAY_PORT}", "--block", *own]


def training_command(url: str) -> list[str]:
    """The job itself: exactly what a person would type on an empty machine."""
    return [sys.executable, "-m", "operant", "resume", url, "--plain"]


def main() -> int:
    """Run this host's part; the exit code of training on the first host, 0 on the others."""
    url = os.environ.get(STORE_VARIABLE, "")
    if not url:
        print(f"{STORE_VARIABLE} is not set: nothing says which run to train", file=sys.stderr)
        return 2
    everyone, here = hosts(os.environ)
    print(f"host {here} of {len(everyone)}; run {url}", flush=True)
    if len(everyone) > 1:
        command = ray_command(everyone, here, int(os.environ.get("SM_NUM_GPUS") or 0))
        if here != everyone[0]:
            _await_port(everyone[0], RAY_PORT)
            subprocess.run(command, check=False)
            return 0
        subprocess.run(command, check=True)
    code = forwarding(training_command(url))
    if len(everyone) > 1:
        subprocess.run(["ray", "stop"], check=False)
    return code


def forwarding(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run a command that is told to stop when this process is: SageMaker sends SIGTERM 120 s before the end.

    It has a session of its own, so that a signal for the whole group of this process reaches it once and not twice.
    """
    stops: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stops.append(number))
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, frame: process.terminate())
        if stops:
            process.terminate()
        return process.wait()


def _await_port(host: str, port: int) -> None:
    deadline = time.monotonic() + JOIN_SECONDS
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=5):
                return
        except OSError:
            time.sleep(2)
    raise SystemExit(f"{host} did not start Ray within {JOIN_SECONDS:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
