"""Whether this machine has what a spec of the language engine asks for: packages, task, model and order file."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    from operant.spec.schema import Spec


def check_suits(spec: Spec) -> None:
    """Refuse in one clear line what could not run."""
    for package in ("torch", "transformers", "tokenizers"):
        try:
            __import__(package)
        except ModuleNotFoundError as missing:
            raise missing_package(missing.name or package, "the language engine") from missing
    if spec.meta.cluster == "ray" and importlib.util.find_spec("ray") is None:
        raise missing_package("ray", "meta.cluster ray")
    from operant.engines.language.build import build_course, model_of, settings_of
    from operant.engines.language.model import check_source, check_vocabulary, load_tokenizer
    from operant.engines.language.vllm_generator import require_vllm
    from operant.envs.text.dialogue import DialogueTask
    from operant.run.seeding import Seeds

    _check_devices(spec)
    model, teacher = model_of(spec), settings_of(spec).teacher
    check_source(model.source)
    if teacher is not None:
        check_source(teacher)
        check_vocabulary(teacher, load_tokenizer(teacher), load_tokenizer(model.source))
    if model.generator == "openai":
        _check_server(model.url or "")
    if model.generator == "vllm":
        require_vllm()
    course = build_course(spec, Seeds(spec.meta.seed))
    course.held_out(1, spec.meta.eval_seed)
    for task in course.tasks:
        if isinstance(task, DialogueTask):
            task.prepare()


def _check_devices(spec: Spec) -> None:
    """A GPU where one is asked for, and one for each process."""
    import torch

    from operant.engines.language.build import choose_device

    there, asked = torch.cuda.device_count(), spec.meta.processes
    if choose_device(spec.meta.device) == "cuda" and 1 < asked != min(asked, there):
        raise UsageError(
            f"meta.processes is {asked}, but this machine has {there} GPU{'s' if there > 1 else ''}, one for each",
            remedy=f"-s meta.processes={there}, or -s meta.device=cpu",
        )


def _check_server(url: str) -> None:
    """Refuse a server that is not there, or that would go on answering with the weights of the beginning."""
    from operant.engines.language.client import Client
    from operant.engines.language.remote import refuses_weights, served_model, takes_weights

    client = Client(url, timeout=30.0, pauses=())
    served_model(client)
    if not takes_weights(client):
        raise refuses_weights(client.url)
