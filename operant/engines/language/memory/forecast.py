"""The memory of a spec's run on a device: what is said of it, and the refusal of what cannot fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from operant.engines.language.build import build_examples, build_sampler
from operant.engines.language.config import model_of, settings_of, supervised_of, text_of
from operant.engines.language.learning.distillation import SELF
from operant.engines.language.memory.devices import GIB, Device
from operant.engines.language.memory.estimate import MemoryEstimate, estimate_memory
from operant.engines.language.memory.model_sizes import ModelSizes, model_sizes
from operant.engines.language.memory.plan import Round, training_plan
from operant.engines.language.policy.build import lora_arguments, tiny_sizes
from operant.engines.language.policy.model import Policy, load_reader, model_without_weights
from operant.engines.language.policy.tiny import TinySizes
from operant.engines.language.rollouts.single_turn import render
from operant.envs.text.dialogue import DialogueTask
from operant.envs.text.mixture import ProblemSampler
from operant.envs.text.task import Problem
from operant.errors import UsageError
from operant.run.expense import MemoryForecast
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.language import LoraSpec, ModelSpec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

FIRST_ROUNDS = 4
"""Rounds of prompts that are read to find the longest."""

NAMES = {"kv_cache": "KV cache"}
LEAST_SLOTS = 8


@dataclass(frozen=True)
class Case:
    """Settings and a round of prompts on a device, from which memory follows."""

    settings: VerifiedAlgorithm
    model: ModelSpec
    round: Round
    device: Device
    processes: int = 1
    teacher: int = 0

    def estimate(self) -> MemoryEstimate:
        """Bytes by part."""
        model = self.model
        sizes = _sizes(model.source, tiny_sizes(model), model.lora, model.dtype, self.device.on_gpu)  # pyright: ignore[reportArgumentType]
        plan = training_plan(
            sizes,
            self.settings,
            self.model,
            self.round,
            on_gpu=self.device.on_gpu,
            processes=self.processes,
            teacher=self.teacher,
        )
        return estimate_memory(sizes, plan)


def forecast(spec: Spec, device: Device) -> MemoryForecast:
    """What a session of the spec takes of a device's memory; `refusal` is set where it cannot fit."""
    found, open_ended = case_of(spec, device)
    estimate, room = found.estimate(), device.room
    refusal = None
    if room is not None and estimate.peak > room and not open_ended:
        refusal = _refusal(found, estimate)
    return MemoryForecast(
        device=device.name,
        device_bytes=device.memory,
        phases=estimate.phases,
        peak=estimate.peak,
        peak_phase=estimate.peak_phase,
        lines=_lines(device, estimate, open_ended),
        refusal=refusal,
    )


def case_of(spec: Spec, device: Device) -> tuple[Case, bool]:
    """The case of a spec, and whether the length of its texts is not known: that of dialogues is not."""
    settings, model = settings_of(spec), model_of(spec)
    sampler = build_sampler(spec, Seeds(spec.meta.seed))
    reader, context = load_reader(model.source, model.tiny.context)
    open_ended = any(isinstance(task, DialogueTask) for task in sampler.tasks)
    texts = _whole_contexts(settings, context) if open_ended else _texts(spec, sampler, reader)
    prompts, completions = zip(*texts, strict=True)
    evaluated = max(spec.meta.eval_episodes, spec.meta.final_episodes)
    group_size = 1 if supervised_of(spec) is not None else settings.group_size
    generates = model.generator == "torch" and spec.meta.cluster != "ray"
    round_ = Round(prompts, completions, group_size, evaluated, generates)
    teacher = 0
    if settings.teacher not in (None, SELF):
        teacher = sum(weight.numel() for weight in model_without_weights(settings.teacher).parameters())
    return Case(settings, model, round_, device, spec.meta.processes, teacher), open_ended


def _texts(spec: Spec, sampler: ProblemSampler, reader: Policy) -> list[tuple[tuple[int, ...], int]]:
    """The longest prompts of the first rounds, as many as one round has, each with its longest completion."""
    settings, model, text = settings_of(spec), model_of(spec), text_of(spec)
    if supervised_of(spec) is not None:
        found = list(_imitated(spec, sampler, reader))
        count = settings.batch_size
    else:
        count = settings.batch_size // settings.group_size
        drawn = [render(problem, reader, model.template) for problem in sampler.take(0, FIRST_ROUNDS * count)]
        found = [(prompt.tokens, text.max_tokens or prompt.max_tokens) for prompt in drawn]
    return sorted(found, key=lambda pair: -(len(pair[0]) + pair[1]))[:count]


def _imitated(spec: Spec, sampler: ProblemSampler, reader: Policy) -> Iterator[tuple[tuple[int, ...], int]]:
    """Prompts and lengths of the answers that supervised learning imitates."""
    model, count = model_of(spec), FIRST_ROUNDS * settings_of(spec).batch_size
    examples = build_examples(spec, Seeds(spec.meta.seed))
    if examples is None:
        tasks = {task.name: task for task in sampler.tasks}
        pairs = [(problem, tasks[problem.task].gold(problem) or "") for problem in sampler.take(0, count)]
    else:
        taken = examples.take(0, count)
        pairs = [(Problem("example", "examples", each.prompt, None, each.system), each.completion) for each in taken]
    for problem, answer in pairs:
        prompt = render(problem, reader, model.template)
        yield prompt.tokens, len(reader.tokenizer.encode(answer, add_special_tokens=False)) + 1


def _whole_contexts(settings: VerifiedAlgorithm, context: int) -> list[tuple[tuple[int, ...], int]]:
    """Rollouts that fill the model's context, half of it written."""
    return [
        ((index,) * (context - context // 2), context // 2)
        for index in range(settings.batch_size // settings.group_size)
    ]


@lru_cache(maxsize=16)
def _sizes(source: str, tiny: TinySizes, lora: LoraSpec | None, dtype: str, on_gpu: bool) -> ModelSizes:
    made = model_without_weights(source, tiny, None if lora is None else lora_arguments(lora))
    return model_sizes(made, getattr(torch, dtype), on_gpu)


def _lines(device: Device, estimate: MemoryEstimate, open_ended: bool) -> list[str]:
    of = "" if device.memory is None else f" of {gib(device.memory)}"
    parts = estimate.phases[estimate.peak_phase]
    told = ", ".join(f"{NAMES.get(name, name)} {gib(count)}" for name, count in parts.items() if count)
    phases = ", ".join(f"{name} {gib(estimate.total(name))}" for name in estimate.phases)
    full = "; texts as long as the model's context" if open_ended else ""
    return [f"memory on {device.name}: {gib(estimate.peak)}{of} ({phases}{full})", f"{estimate.peak_phase}: {told}"]


def _refusal(case: Case, estimate: MemoryEstimate) -> UsageError:
    """Which part is too big, and which settings bring it under."""
    room = case.device.room or 0
    parts = estimate.phases[estimate.peak_phase]
    largest = max(parts, key=lambda name: parts[name])
    fitting = [(words, each) for words, each in alternatives(case) if each.estimate().peak <= room]
    told = [f"{words} ({gib(each.estimate().peak)})" for words, each in fitting[:3]]
    return UsageError(
        f"{estimate.peak_phase} would take {gib(estimate.peak)}, but {case.device.name} has room for {gib(room)}: "
        f"{NAMES.get(largest, largest)} alone {gib(parts[largest])}",
        remedy="; or ".join(told) if told else "a smaller model, or a device with more memory",
    )


def alternatives(case: Case) -> Iterator[tuple[str, Case]]:
    """Settings that take less memory, as `-s` takes them: the mildest first, and at last several at once."""
    checkpointed = _with_model(case, gradient_checkpointing=True)
    if not case.model.gradient_checkpointing:
        yield "-s agent.model.gradient_checkpointing=true", checkpointed
    yield from _halved(case, "agent.algorithm.pass_tokens", case.settings.pass_tokens, case.round.longest)
    yield from _halved(case, "agent.model.slots", case.model.slots, LEAST_SLOTS)
    yield from _halved(case, "env.text.max_tokens", max(case.round.completions), 16)
    if case.model.lora is None:
        yield "-s agent.model.lora.rank=16", _with_model(case, lora=LoraSpec())
    if checkpointed.estimate().peak > (case.device.room or 0):
        yield from _together(case, checkpointed)
    if case.model.lora is None:
        yield from _together(case, _with_model(checkpointed, lora=LoraSpec()))


def _together(case: Case, made: Case) -> Iterator[tuple[str, Case]]:
    """`made` of a case with micro-batches and slots halved in turn, what helps more each time, if it comes to fit."""
    room = case.device.room or 0
    while made.estimate().peak > room:
        smaller = [
            _with(made, path, value // 2)
            for path, value, least in (
                ("agent.algorithm.pass_tokens", made.settings.pass_tokens, made.round.longest),
                ("agent.model.slots", made.model.slots, LEAST_SLOTS),
            )
            if value // 2 >= least
        ]
        if not smaller:
            return
        made = min(smaller, key=lambda each: each.estimate().peak)
    before, after = _settings(case), _settings(made)
    yield " ".join(f"-s {path}={value}" for path, value in after.items() if value != before[path]), made


def _settings(case: Case) -> dict[str, str]:
    """The settings that `_together` may differ in, as they are given by -s."""
    lora = case.model.lora
    return {
        "agent.model.gradient_checkpointing": str(case.model.gradient_checkpointing).lower(),
        "agent.model.lora.rank": "" if lora is None else str(lora.rank),
        "agent.algorithm.pass_tokens": str(case.settings.pass_tokens),
        "agent.model.slots": str(case.model.slots),
    }


def _halved(case: Case, path: str, value: int, least: int) -> Iterator[tuple[str, Case]]:
    """The largest half, quarter, .. of a setting that fits."""
    room = case.device.room or 0
    while value // 2 >= least:
        value //= 2
        smaller = _with(case, path, value)
        if smaller.estimate().peak <= room:
            yield f"-s {path}={value}", smaller
            return


def _with(case: Case, path: str, value: int) -> Case:
    section, name = path.rsplit(".", 1)
    if section == "env.text":
        shorter = [min(length, value) for length in case.round.completions]
        return replace(case, round=replace(case.round, completions=shorter))
    if section == "agent.model":
        return _with_model(case, **{name: value})
    return replace(case, settings=case.settings.model_copy(update={name: value}))


def _with_model(case: Case, **update: object) -> Case:
    return replace(case, model=case.model.model_copy(update=update))


def gib(count: float) -> str:
    """12.3 GiB, 0.04 GiB"""
    amount = count / GIB
    return f"{amount:.1f} GiB" if amount >= 0.95 else f"{count / 2**20:,.0f} MiB"
