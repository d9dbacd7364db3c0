"""Fuzzed requests to a server in a process of its own: no failure of ours, none over its limit, memory given back."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("transformers")

from operant.engines.language.policy.model import write_folder
from tests.processes import wait_until
from tests.unit.engines.language.served_models import talking_policy
from tests.unit.web.http_fuzz import CLOSED, KINDS, Outcome, ask, draw
from tests.warm import WarmProcess

CLIENTS = 8
LIMIT_SECONDS = 30.0
MAY_GROW_MIB = 100.0
KNOWN = {200, 400, 403, 404, 405, 408, 413, 414, 429, 431, 503, 504, CLOSED}
EXACT = {"prompt": "ab", "max_tokens": 20, "seed": 3, "n": 4, "logprobs": 0}


Served = tuple[WarmProcess, int]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Served]:
    """A server in a process of its own, and its port."""
    write_folder(talking_policy(), tmp_path / "model")
    words = ["-m", "operant", "serve", str(tmp_path / "model"), "--port", "0", "--name", "small", "--json"]
    said = tmp_path / "said"
    child = WarmProcess([*words, "--timeout", str(LIMIT_SECONDS)], said, errors=tmp_path / "errors")
    assert wait_until(lambda: said.exists() and said.read_text().endswith("}\n"), seconds=120)
    yield child, int(json.loads(said.read_text())["url"].split(":")[2].partition("/")[0])
    child.send_signal(signal.SIGTERM)
    child.communicate(60)
    assert child.returncode == 0


def resident_mib(child: WarmProcess) -> float:
    lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def choices(port: int) -> Any:
    request = Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(EXACT).encode())
    with urlopen(request, timeout=60) as reply:
        return json.load(reply)["choices"]


def fuzz(process: Served, errors: Path, seeds: range) -> list[Outcome]:
    """Send the requests of all seeds; whatever is promised of every server holds."""
    child, port = process
    before, said = choices(port), errors.read_text()  # the loading of the model is told there
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda seed: ask(port, draw(seed)), range(-len(KINDS) * 4, 0)))  # caches are filled
        start = resident_mib(child)
        outcomes = list(pool.map(lambda seed: ask(port, draw(seed)), seeds))
    after = choices(port)
    end = resident_mib(child)
    counts = Counter(outcome.status for outcome in outcomes)
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    print(f"\n{len(outcomes)} requests, by status {dict(sorted(counts.items()))}")
    print(f"longest {slowest.seconds:.2f} s ({slowest.kind}), resident {start:.0f} -> {end:.0f} MiB")
    assert [(one.kind, one.status, one.body[:300]) for one in outcomes if one.status not in KNOWN] == []
    assert slowest.seconds < 2 * LIMIT_SECONDS
    for outcome in outcomes:
        if outcome.status >= 400 and outcome.body:
            assert set(json.loads(outcome.body)["error"]) == {"message", "type", "param", "code"}, outcome
    assert errors.read_text() == said
    assert after == before
    assert end < start + MAY_GROW_MIB
    return outcomes


def test_a_sample(process: Served, tmp_path: Path) -> None:
    outcomes = fuzz(process, tmp_path / "errors", range(120))
    assert {outcome.kind for outcome in outcomes} == {make.__name__.strip("_") for _, make in KINDS}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand(process: Served, tmp_path: Path) -> None:
    fuzz(process, tmp_path / "errors", range(1000, 11_000))
