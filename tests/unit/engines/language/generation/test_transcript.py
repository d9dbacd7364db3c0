"""A dialogue's tokens: what the policy wrote stays as it was written, and a sample holds exactly that."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("transformers")

from operant.engines.language.build import TrainingContext
from operant.engines.language.generation.generator import Completion, Step
from operant.engines.language.generation.transcript import Transcript
from operant.engines.language.learning.samples import samples_of
from operant.engines.language.learning.sft import as_completion
from operant.engines.language.policy.batching import micro_batches
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.types import Answer
from operant.envs.text.dialogue import Message
from operant.envs.text.task import RIGHT

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
FORGETFUL = TEMPLATE.replace("{{ m.content }}", "{{ m.content if loop.last or m.role != 'assistant' else '...' }}")


def templated(context: TrainingContext, template: str | None) -> Policy:
    """The policy with a chat template."""
    context.policy.tokenizer.chat_template = template
    return replace(context.policy, has_chat_template=template is not None)


def told(context: TrainingContext, template: str | None, anew: bool = False) -> list[Step]:
    """Two turns of a policy, with an answer of the world between them."""
    policy = templated(context, template)
    transcript = Transcript(policy, "auto", [Message("system", "be"), Message("user", "ask")], anew)
    steps = []
    for said in ("one", "two"):
        steps.append(Step(transcript.tokens, as_completion(context.policy, said)))
        transcript.add(steps[-1].completion, [Message("tool", "ok"), Message("user", "go on")])
    return steps


def text_of(context: TrainingContext, tokens: tuple[int, ...]) -> str:
    return str(context.policy.tokenizer.decode(list(tokens)))


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_a_prompt_goes_on_where_the_turn_before_ended(context: TrainingContext, template: str | None):
    first, second = told(context, template)
    so_far = first.prompt + first.completion.tokens
    assert second.prompt[: len(so_far)] == so_far
    if template:
        assert (
            text_of(context, second.prompt)
            == f"<system>be\n<user>ask\n<assistant>one{eos(context)}\n<user>ok\ngo on\n<assistant>"
        )


def eos(context: TrainingContext) -> str:
    return str(context.policy.tokenizer.eos_token)


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_an_interleaved_answer_is_one_sample_of_the_policys_own_tokens(context: TrainingContext, template: str | None):
    steps = told(context, template)
    ((sample, _, _),) = samples_of(Answer(tuple(steps), RIGHT, 1.0, interleaved=True))
    learnt = [sample.completion[place] for place in sample.places]
    assert learnt == [*steps[0].completion.tokens, *steps[1].completion.tokens]
    assert sample.prompt + sample.completion == steps[1].prompt + steps[1].completion.tokens
    (batch,) = micro_batches([sample], 256)
    assert batch.targets.tolist() == learnt
    row = batch.tokens.flatten().tolist()
    everything = list(sample.prompt + sample.completion)
    assert [everything[at + 1] for at in batch.at.tolist()] == learnt
    assert row[: len(everything) - 1] == everything[:-1]


def test_a_template_that_rewrites_the_past_begins_a_new_sample(context: TrainingContext):
    steps = told(context, FORGETFUL)
    samples = samples_of(Answer(tuple(steps), RIGHT, 1.0, interleaved=True))
    assert [sample.prompt for sample, _, _ in samples] == [step.prompt for step in steps]
    assert "..." in text_of(context, steps[1].prompt)


def test_branching_learns_from_every_turn(context: TrainingContext):
    steps = told(context, TEMPLATE, anew=True)
    samples = samples_of(Answer(tuple(steps), RIGHT, 1.0))
    assert [(sample.prompt, sample.completion) for sample, _, _ in samples] == [
        (step.prompt, step.completion.tokens) for step in steps
    ]


def test_a_turn_that_was_cut_off_is_closed_by_the_template(context: TrainingContext):
    transcript = Transcript(templated(context, TEMPLATE), "auto", [Message("user", "ask")])
    cut = Completion(as_completion(context.policy, "on").tokens[:-1], (), "on", "length")
    transcript.add(cut, [Message("user", "stop")])
    assert text_of(context, transcript.tokens) == f"<user>ask\n<assistant>on{eos(context)}\n<user>stop\n<assistant>"


@pytest.mark.parametrize("template", [None, TEMPLATE])
def test_with_a_history_only_the_last_turns_stay_beside_the_system_message(
    context: TrainingContext, template: str | None
):
    policy = templated(context, template)
    shown = {}
    for history in (0, 1):
        opening = [Message("system", "be"), Message("user", "ask")]
        transcript = Transcript(policy, "auto", opening, anew=True, history=history)
        for said, heard in (("one", "first"), ("two", "second")):
            transcript.add(as_completion(context.policy, said), [Message("user", heard)])
        shown[history] = text_of(context, transcript.tokens)
    if template is None:
        assert shown == {0: "be\n\nsecond", 1: "be\n\nfirsttwosecond"}
    else:
        assert shown[0] == "<system>be\n<user>second\n<assistant>"
        assert shown[1] == f"<system>be\n<user>first\n<assistant>two{eos(context)}\n<user>second\n<assistant>"
