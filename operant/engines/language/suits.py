"""Whether this machine has what a spec of the language engine asks for: packages, task, model and order file."""

from __future__ import annotations

import importlib.util
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
    if spec.meta.cluster == "ray" and importlib.util.find_spec("ray") is None:
        raise missing_package("ray", "meta.cluster ray")
    from operant.engines.language.build import build_course, choose_device, model_of
    from operant.engines.language.model import check_source
    from operant.run.seeding import Seeds

    choose_device(spec.meta.device)
    check_source(model_of(spec).source)
    course = build_course(spec, Seeds(spec.meta.seed))
    course.held_out(1, spec.meta.eval_seed)
