"""Whether this machine has what a spec of the language engine asks for: packages, task, model and order file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operant.engines import missing_package

if TYPE_CHECKING:
    from operant.spec.schema import Spec


def check_suits(spec: Spec) -> None:
    """Refuse in one clear line what could not run."""
    for package in ("torch", "transformers", "tokenizers"):
        try:
            __import__(package)
        except ModuleNotFoundError as missing:
            raise missing_package(missing.name or package, "the language engine") from missing
    from operant.engines.language.build import build_course, choose_device, model_of
    from operant.engines.language.model import check_source
    from operant.run.seeding import Seeds

    choose_device(spec.meta.device)
    model = model_of(spec)
    check_source(model.source)
    if model.generator == "openai":
        _check_server(model.url or "")
    course = build_course(spec, Seeds(spec.meta.seed))
    course.held_out(1, spec.meta.eval_seed)


def _check_server(url: str) -> None:
    """Refuse a server that is not there, or that would go on answering with the weights of the beginning."""
    from operant.engines.language.client import Client
    from operant.engines.language.remote import refuses_weights, served_model, takes_weights

    client = Client(url, timeout=30.0, pauses=())
    served_model(client)
    if not takes_weights(client):
        raise refuses_weights(client.url)
