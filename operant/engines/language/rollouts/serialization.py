"""Rollouts as plain data and back, token for token and bit for bit; what is read back is learnt from like the first."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from operant.engines.language.generation.generator import Completion, Prompt, Step
from operant.engines.language.policy.sampling_mask import SamplingMask
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.dialogue import Message
from operant.envs.text.task import Problem, TreeNode, Verdict
from operant.run.episode import Turn

Row = dict[str, Any]


def group_row(group: Group) -> Row:
    """A group without its problem and place, which the sampler knows."""
    return {
        "prompt": vars(group.prompt),
        "answers": [_answer_row(each) for each in group.answers],
        "errors": group.errors,
        "reasons": group.reasons,
        "teacher_prompt": group.teacher_prompt,
    }


def group_of(row: Mapping[str, Any], problem: Problem, place: int) -> Group:
    """The group of a row."""
    prompt = row["prompt"]
    return Group(
        problem,
        Prompt(tuple(prompt["tokens"]), prompt["max_tokens"], tuple(prompt["stop"]), prompt["salt"]),
        tuple(_answer_of(each) for each in row["answers"]),
        tuple(row["errors"]),
        place,
        None if row["teacher_prompt"] is None else tuple(row["teacher_prompt"]),
        tuple(row["reasons"]),
    )


def step_rows(steps: Sequence[Step]) -> list[Row]:
    """Steps as rows. A prompt that goes on where the last step ended is written without what that step had."""
    rows, before = list[Row](), ()
    for step in steps:
        goes_on = bool(before) and step.prompt[: len(before)] == before
        rows.append(
            {
                "goes_on": goes_on,
                "prompt": step.prompt[len(before) :] if goes_on else step.prompt,
                "completion": _completion_row(step.completion),
            }
        )
        before = step.prompt + step.completion.tokens
    return rows


def steps_of(rows: Sequence[Mapping[str, Any]]) -> list[Step]:
    """The steps of rows."""
    steps, before = list[Step](), ()
    for row in rows:
        prompt = (*before, *row["prompt"]) if row["goes_on"] else tuple(row["prompt"])
        steps.append(Step(prompt, _completion_of(row["completion"])))
        before = prompt + steps[-1].completion.tokens
    return steps


def verdict_row(verdict: Verdict) -> Row:
    """A verdict as a row."""
    nodes = [
        {**vars(node), "verdict": verdict_row(node.verdict), "turns": [turn.as_dict() for turn in node.turns]}
        for node in verdict.nodes
    ]
    return {**vars(verdict), "nodes": nodes}


def verdict_of(row: Mapping[str, Any]) -> Verdict:
    """The verdict of a row."""
    nodes = tuple(
        TreeNode(**{**node, "verdict": verdict_of(node["verdict"]), "turns": turns_of(node["turns"])})
        for node in row["nodes"]
    )
    return Verdict(**{**row, "nodes": nodes})


def turns_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """The turns of rows."""
    return tuple(Turn.from_dict(row) for row in rows)


def message_rows(messages: Sequence[Message]) -> list[Row]:
    """Messages as rows."""
    return [vars(message) for message in messages]


def messages_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The messages of rows."""
    return tuple(Message(**row) for row in rows)


def bytes_text(data: bytes | None) -> str | None:
    """Bytes as text."""
    return None if data is None else b64encode(data).decode()


def bytes_of(text: str | None) -> bytes | None:
    """The bytes of a text."""
    return None if text is None else b64decode(text)


def _answer_row(answer: Answer) -> Row:
    return {
        **vars(answer),
        "steps": step_rows(answer.steps),
        "verdict": verdict_row(answer.verdict),
        "turns": [turn.as_dict() for turn in answer.turns],
    }


def _answer_of(row: Mapping[str, Any]) -> Answer:
    read = {
        "steps": tuple(steps_of(row["steps"])),
        "verdict": verdict_of(row["verdict"]),
        "turns": turns_of(row["turns"]),
    }
    return Answer(**{**row, **read})


def _completion_row(completion: Completion) -> Row:
    mask = completion.mask
    kept = None if mask is None else {"data": bytes_text(mask.data), "places": mask.places}
    return {**vars(completion), "mask": kept}


def _completion_of(row: Mapping[str, Any]) -> Completion:
    kept = row["mask"]
    mask = None if kept is None else SamplingMask(b64decode(kept["data"]), kept["places"])
    return Completion(**{**row, "tokens": tuple(row["tokens"]), "logprobs": tuple(row["logprobs"]), "mask": mask})
