"""Whether this machine has what a spec of the language engine asks for: packages, task, model and order file."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    from operant.envs.text.mixture import ProblemSampler
    from operant.spec.schema import Spec

FIRST_ROUNDS = 4


def check_compatibility(spec: Spec) -> None:
    """Refuse in one clear line what could not run."""
    for package in ("torch", "transformers", "tokenizers"):
        try:
            __import__(package)
        except ModuleNotFoundError as missing:
            raise missing_package(missing.name or package, "the language engine", "language") from missing
    if spec.meta.cluster == "ray" and importlib.util.find_spec("ray") is None:
        raise missing_package("ray", "meta.cluster ray")
    from operant.engines.language.build import build_examples, build_sampler
    from operant.engines.language.config import model_of, settings_of
    from operant.engines.language.generation.vllm_generator import require_vllm
    from operant.engines.language.learning.distillation import SELF
    from operant.engines.language.policy.build import lora_arguments, tiny_sizes
    from operant.engines.language.policy.model import (
        check_source,
        check_vocabulary,
        load_tokenizer,
        model_without_weights,
    )
    from operant.envs.text.dialogue import DialogueTask
    from operant.run.seeding import Seeds

    _check_devices(spec)
    model, teacher = model_of(spec), settings_of(spec).teacher
    check_source(model.source)
    if model.lora is not None:
        model_without_weights(model.source, tiny_sizes(model), lora_arguments(model.lora))
    if settings_of(spec).packing:
        _check_packing(model.source, model_without_weights(model.source, tiny_sizes(model)))
    if teacher not in (None, SELF):
        check_source(teacher)
        check_vocabulary(teacher, load_tokenizer(teacher), load_tokenizer(model.source))
    if model.generator == "openai":
        _check_server(model.url or "", settings_of(spec).truncates)
    if model.generator == "vllm":
        require_vllm()
    build_examples(spec, Seeds(spec.meta.seed))
    sampler = build_sampler(spec, Seeds(spec.meta.seed))
    _check_gold(spec, sampler)
    _check_room(spec, sampler)
    for task in sampler.tasks:
        if isinstance(task, DialogueTask):
            task.prepare()


def _check_packing(source: str, model: Any) -> None:
    """A model whose attention can keep samples of one row apart, where they are packed."""
    from operant.engines.language.policy.weights import supports

    if not supports(model):
        raise UsageError(
            f"agent.algorithm.packing: models of the kind {model.config.model_type} cannot read packed samples",
            place=source,
            remedy="-s agent.algorithm.packing=false",
        )


def _check_gold(spec: Spec, sampler: ProblemSampler) -> None:
    """Something to imitate in every task, where gold answers are learnt from, and to tell a teacher who is told it."""
    from operant.engines.language.config import settings_of, sft_data_of, supervised_of
    from operant.engines.language.learning.sft import refuse_without_gold
    from operant.engines.language.learning.teacher_prompts import answer_first_prompt

    settings = settings_of(spec)
    supervised = supervised_of(spec) is not None or settings.sft_coef
    for task in sampler.tasks:
        if settings.warmup or (supervised and sft_data_of(spec) is None):
            refuse_without_gold(task, task.problems("train")[0])
        if settings.teacher is not None and settings.teacher_prompt == "answer":
            answer_first_prompt(task, task.problems("train")[0])


def _check_devices(spec: Spec) -> None:
    """A GPU where one is asked for, and one for each process."""
    import torch

    from operant.engines.language.policy.build import choose_device

    there, asked = torch.cuda.device_count(), spec.meta.processes
    if choose_device(spec.meta.device) == "cuda" and 1 < asked != min(asked, there):
        raise UsageError(
            f"meta.processes is {asked}, but this machine has {there} GPU{'s' if there > 1 else ''}, one for each",
            remedy=f"-s meta.processes={there}, or -s meta.device=cpu",
        )


def _check_room(spec: Spec, sampler: ProblemSampler) -> None:
    """Prompts of the first rounds, and all of the evaluations, leave room for `env.text.max_tokens` in the context.

    Training would refuse the first that does not, after the model was loaded.
    """
    from operant.engines.language.config import model_of, settings_of, text_of
    from operant.engines.language.policy.model import load_reader
    from operant.engines.language.rollouts.single_turn import render
    from operant.envs.text.dialogue import DialogueTask

    meta, model, longest, settings = spec.meta, model_of(spec), text_of(spec).max_tokens, settings_of(spec)
    held_out = sampler.held_out(max(meta.eval_episodes, meta.final_episodes), meta.eval_seed)
    if any(isinstance(task, DialogueTask) for task in sampler.tasks):
        return
    reader, context = load_reader(model.source, model.tiny.context)
    first = sampler.take(0, FIRST_ROUNDS * settings.batch_size // settings.group_size)
    for problem in (*first, *held_out):
        prompt = render(problem, reader, model.template)
        asked = longest or prompt.max_tokens
        length = len(prompt.tokens)
        if length + asked > context:
            wider = (
                f"-s agent.model.tiny.context={length + asked}"
                if model.source == "tiny"
                else "a model of a longer context"
            )
            raise UsageError(
                f"env.text.max_tokens: {problem.id} has {length} tokens and asks for {asked} more, "
                f"but the model's context is {context}",
                remedy=f"-s env.text.max_tokens={context - length}" if length < context else wider,
            )


def _check_server(url: str, truncates: bool) -> None:
    """Refuse a server that is not there, or whose completions could not be learnt from.

    It would go on answering with the weights of the beginning, or not say what truncated sampling left to draw from.
    """
    from operant.engines.language.generation.http_client import Client
    from operant.engines.language.generation.remote_generator import (
        gives_masks,
        refuses_weights,
        served_model,
        takes_weights,
    )

    client = Client(url, timeout=30.0, pauses=())
    served_model(client)
    if not takes_weights(client):
        raise refuses_weights(client.url)
    if truncates and not gives_masks(client):
        raise UsageError(
            "agent.algorithm: top_p, top_k and min_p cannot be replayed in the loss, for the server does not say which "
            "tokens they left to draw from",
            place=client.url,
            remedy="operant serve MODEL --allow-load, or top_p 1, top_k 0 and min_p 0",
        )
