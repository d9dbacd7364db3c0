"""The rates of a run, from what its sessions recorded: the trace, the episodes and the metrics."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from operant.errors import UsageError
from operant.run.layout import CHECKPOINTS_FOLDER, EPISODES_FILE, LATEST_LINK, METRICS_FILE, TRACE_FILE, shown
from operant.run.metrics import read_rows
from operant.run.rates import Call, Rates, fit_decoding

TRAINER, EVALUATOR = "trainer", "evaluator"
WEIGHTS = "model*.safetensors"


@dataclass(frozen=True)
class Span:
    """A bar of the trace, in seconds."""

    name: str
    lane: str
    begin: float
    seconds: float
    facts: dict[str, Any]

    @property
    def end(self) -> float:
        """When it ended."""
        return self.begin + self.seconds


@dataclass
class Timeline:
    """What one attempt did: bars by name, tokens of the prompts by who wrote them, and when prompts met their fate."""

    spans: defaultdict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    written: list[tuple[float, str, int, int]] = field(default_factory=list)
    ended: list[tuple[float, int]] = field(default_factory=list)

    def of_lane(self, name: str, lane: str) -> list[Span]:
        """The bars of one row, in order; the first is left out, for it includes the start of processes."""
        found = [span for span in self.spans[name] if span.lane == lane]
        return found[1:] if len(found) > 2 else found


def read_rates(sessions: Sequence[Path], slots: int, generators: int, verifiers: int) -> tuple[Rates, list[str]]:
    """The rates of sessions of the same model, and remarks on what they could not tell.

    `generators` shared every synchronous call, `verifiers` every verification; a generator has so many `slots`.
    """
    lengths = _lengths(sessions)
    timelines = [each for session in sessions for each in read_trace(session / TRACE_FILE)]
    _refuse_many_turns(timelines, sessions[0])
    calls = [call for each in timelines for call in _calls(each, generators)]
    trains = [pair for each in timelines for pair in _trained(each)]
    if not (calls and trains and lengths):
        raise UsageError(
            "this run has no rates yet: its trace has no round that was generated and trained",
            place=shown(sessions[0]),
            remedy="let it train for some rounds, or plan its spec: operant plan SPEC",
        )
    token_seconds, step_seconds, remarks = fit_decoding(calls, lengths, slots)
    verified = [span for each in timelines for span in each.spans["verify"][1:]]
    answers = sum(span.facts["answers"] for span in verified)
    work = sum(span.seconds * min(verifiers, span.facts["answers"]) for span in verified)
    publish, load = _hand_over(timelines)
    rates = Rates(
        token_seconds=token_seconds,
        step_seconds=step_seconds,
        train_token_seconds=sum(seconds for seconds, _ in trains) / max(sum(tokens for _, tokens in trains), 1),
        verify_seconds=work / max(answers, 1),
        lengths=lengths,
        weight_bytes=_weight_bytes(sessions[0]),
        publish_seconds=publish,
        load_seconds=load,
        round_seconds=median([rest for each in timelines for rest in _rest(each)] or [0.0]),
        signal=_signal(sessions),
    )
    return rates, remarks


def _refuse_many_turns(timelines: Sequence[Timeline], session: Path) -> None:
    """Calls of a generator for one turn each of many rollouts have turns, and no prompts."""
    if any("prompts" not in span.facts for each in timelines for span in each.spans["generate"]):
        raise UsageError(
            "tasks of many turns are not simulated", place=shown(session), remedy="plan a task of one turn"
        )


def read_trace(path: Path) -> list[Timeline]:
    """The attempts of a session, as far as its trace has them."""
    lanes: dict[tuple[int, int], str] = {}
    found: defaultdict[int, Timeline] = defaultdict(Timeline)
    for row in _events(path):
        attempt, args = found[row["pid"]], row.get("args", {})
        if row.get("name") == "thread_name":
            lanes[row["pid"], row["tid"]] = args["name"]
        elif row["ph"] == "X":
            lane = lanes.get((row["pid"], row["tid"]), "")
            attempt.spans[row["name"]].append(Span(row["name"], lane, row["ts"] / 1e6, row["dur"] / 1e6, args))
        elif row["ph"] == "n" and args.get("step") == "generated":
            attempt.written.append((row["ts"] / 1e6, args["by"], row["id"], args["tokens"]))
        elif row["ph"] == "e":
            attempt.ended.append((row["ts"] / 1e6, row["id"]))
    return list(found.values())


def _events(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        try:
            yield json.loads(line.rstrip(","))
        except json.JSONDecodeError:  # a kill cut it in two
            continue


def _calls(timeline: Timeline, generators: int) -> list[Call]:
    """The calls for training: those after which prompts were noted as generated, which evaluation does not do."""
    found = []
    for lane in {span.lane for span in timeline.spans["generate"]} - {EVALUATOR}:
        spans = timeline.of_lane("generate", lane)
        written = [(at, tokens) for at, by, _, tokens in timeline.written if by == lane]
        shared = 1 if lane[-1].isdigit() else generators
        for span, tokens in zip(spans, _sums([span.end for span in spans], written), strict=True):
            if tokens:
                each = -(-span.facts["prompts"] // shared)
                share = each / span.facts["prompts"]
                found.append(Call(each * span.facts["completions"], tokens * share, span.seconds))
    return found


def _sums(times: Sequence[float], amounts: Sequence[tuple[float, int]]) -> list[int]:
    """The sum of what came after each time and before the next one."""
    sums = [0] * (len(times) + 1)
    for at, amount in amounts:
        sums[bisect_right(times, at)] += amount
    return sums[1:]


def _trained(timeline: Timeline) -> list[tuple[float, int]]:
    """Seconds and completion tokens of each round that was learnt from."""
    tokens = {place: count for _, _, place, count in timeline.written}
    spans = timeline.of_lane("train", TRAINER)
    learnt = _sums([span.end for span in spans], [(at, tokens.get(place, 0)) for at, place in timeline.ended])
    # After the last round prompts are left too, which nobody has learnt from.
    return [(span.seconds, count) for span, count in zip(spans[:-1], learnt[:-1], strict=True) if count]


def _hand_over(timelines: Sequence[Timeline]) -> tuple[float, float]:
    """Seconds of the trainer to publish weights, and of a generator to load them.

    In synchronous rounds the trainer waits for the generators, so that all of it is theirs.
    """
    trainer = [span.seconds for each in timelines for span in each.of_lane("sync", TRAINER)]
    lanes = {span.lane for each in timelines for span in each.spans["sync"]} - {TRAINER}
    loads = [span.seconds for each in timelines for lane in lanes for span in each.of_lane("sync", lane)]
    if not loads:
        return 0.0, median(trainer or [0.0])
    return median(trainer or [0.0]), median(loads)


def _rest(timeline: Timeline) -> list[float]:
    """Of each round, the trainer's seconds that no bar of it or of a synchronous generator explains."""
    own = {"train", "sync", "wait"}
    bars = [span for name in own for span in timeline.spans[name] if span.lane == TRAINER]
    in_turn = ("generate", "generator"), ("verify", "verifiers"), ("reward", "verifiers")
    if not timeline.spans["wait"]:
        bars += [span for name, lane in in_turn for span in timeline.spans[name] if span.lane == lane]
    begins = [span.begin for span in timeline.of_lane("train", TRAINER)]
    explained = [0.0] * (len(begins) + 1)
    for bar in bars:
        explained[bisect_right(begins, bar.begin)] += bar.seconds
    return [max(0.0, end - begin - spent) for (begin, end), spent in zip(pairwise(begins), explained[1:], strict=False)]


def _lengths(sessions: Sequence[Path]) -> tuple[int, ...]:
    rows = (row for session in sessions for row in read_rows(session / EPISODES_FILE))
    return tuple(row["length"] for row in rows if row["split"] == "train" and row["length"] > 0)


def _signal(sessions: Sequence[Path]) -> float:
    rows = (row for session in sessions for row in read_rows(session / METRICS_FILE))
    same = [row["rollout/zero_variance"] for row in rows if row.get("rollout/zero_variance") is not None]
    return 1.0 - float(np.mean(same)) if same else 1.0


def _weight_bytes(session: Path) -> int:
    folder = session / CHECKPOINTS_FOLDER / LATEST_LINK
    return sum(file.stat().st_size for file in folder.rglob(WEIGHTS)) if folder.is_dir() else 0
