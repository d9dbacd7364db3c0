"""Every field of every section, misspelt in every usual way: each gets the right suggestion, at its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pydantic import ValidationError

from operant.errors import SpecError
from operant.spec.distributions import PARAMETERS
from operant.spec.errors import diagnostics_in
from operant.spec.fields import Closed
from operant.spec.load import load
from operant.spec.paths import SECTIONS
from operant.spec.reading.diagnostics import Diagnostic
from operant.spec.reading.document import Source
from operant.spec.reading.yaml import read_yaml
from operant.spec.schema import Spec
from operant.spec.space import search_diagnostics

FIELDS = {name for model in SECTIONS.values() for name in model.model_fields}
SLOW = pytest.mark.slow
OPTIMIZER = ("agent", "net", "optimizer")
# Where a section of each first word stands in a spec, and how it is told which of its kind it is.
HOMES: dict[str, tuple[str, ...]] = {
    "spec": (),
    "env": ("env",),
    "agent": ("agent",),
    "meta": ("meta",),
    "optimizer": OPTIMIZER,
    "schedule": ("agent", "algorithm", "entropy_coef"),
    "algorithm": ("agent", "algorithm"),
    "net": ("agent", "net"),
    "memory": ("agent", "memory"),
    "scheduler": (*OPTIMIZER, "scheduler"),
}
MODEL = ("agent", "model")
# Sections that are named after their place, not after their kind.
PLACES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("model",): MODEL,
    ("model", "tiny"): (*MODEL, "tiny"),
    ("model", "lora"): (*MODEL, "lora"),
    ("model", "optimizer"): (*MODEL, "optimizer"),
    ("model", "vllm"): (*MODEL, "vllm"),
    ("text",): ("env", "text"),
    ("text", "dialogue"): ("env", "text", "dialogue"),
    ("warmup",): ("agent", "algorithm", "warmup"),
    ("ray",): ("meta", "ray"),
    ("launch",): ("meta", "launch"),
    **{("launch", place): ("meta", "launch", place) for place in ("slurm", "ray", "dstack", "sagemaker")},
    ("search_scheduler",): ("meta", "search_scheduler"),
    ("search_resources",): ("meta", "search_resources"),
}
# Tasks of a mixture, reward functions and trackers stand in lists; `test_errors`, `test_own_parts` and `test_trackers`
# have their mistakes.
LISTED = (
    ("text", "mixture"),
    *(("reward", name) for name in ("regex", "soft_overlong")),
    *(("tracker", name) for name in ("tensorboard", "wandb", "mlflow", "trackio")),
)
BRITISH = {"normalize": "normalise", "optimizer": "optimiser", "center": "centre", "duelling": "dueling"}


def drop(word: str) -> str:
    middle = len(word) // 2
    return word[:middle] + word[middle + 1 :]


def double(word: str) -> str:
    middle = len(word) // 2
    return word[: middle + 1] + word[middle:]


def swap(word: str) -> str:
    """The first two different neighbours after the start, the other way round."""
    at = next((i for i in range(min(1, len(word) - 2), len(word) - 1) if word[i] != word[i + 1]), 0)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def replace(word: str) -> str:
    middle = len(word) // 2
    return word[:middle] + ("x" if word[middle] != "x" else "y") + word[middle + 1 :]


def hyphens(word: str) -> str:
    return word.replace("_", "-")


def camels(word: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), word)


def joined(word: str) -> str:
    return word.replace("_", "")


def shouted(word: str) -> str:
    return word.upper()


def overseas(word: str) -> str:
    for here, there in BRITISH.items():
        word = word.replace(here, there)
    return word


SLIPS: list[Callable[[str], str]] = [drop, double, swap, replace, hyphens, camels, joined, shouted, overseas]


def misspelt(model: type[Closed], slip: Callable[[str], str]) -> dict[str, str]:
    """For each field that this slip changes into no other field: what is typed, and what was meant."""
    typed = {slip(name): name for name in model.model_fields if len(name) > 1}
    return {word: name for word, name in typed.items() if word not in FIELDS and len(word) > 1}


def text_of(words: tuple[str, ...], keys: list[str]) -> tuple[str, int, int]:
    """A spec whose section of these words has the keys; the line of the first of them, and their column."""
    home = PLACES.get(words) or HOMES[words[0]]
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(home)]
    if words == ("warmup",):
        lines.insert(2, "    name: grpo")
    if len(words) > 1 and words not in PLACES:
        lines.append(f"{'  ' * len(home)}{'type' if words[0] == 'net' else 'name'}: {words[1]}")
    first = len(lines) + 1
    lines += [f"{'  ' * len(home)}{key}: 1" for key in keys]
    return "\n".join(lines) + "\n", first, 2 * len(home) + 1


def complaints(text: str) -> list[Diagnostic]:
    """What is said of unknown keys."""
    document = read_yaml(Source(text, "spec.yaml"))
    with pytest.raises(ValidationError) as caught:
        Spec.model_validate(document.data)
    return [each for each in diagnostics_in(caught.value, document) if "is not a se" in each.cause]


def walk() -> list[ParameterSet]:
    """Every section with every slip; by default each section with one, and each slip with several sections."""
    return [
        pytest.param(words, slip, id=f"{' '.join(words)}-{slip.__name__}", marks=() if at % len(SLIPS) == of else SLOW)
        for at, words in enumerate(words for words in SECTIONS if words not in LISTED)
        for of, slip in enumerate(SLIPS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "slip"), walk())
def test_every_field_misspelt_gets_the_right_suggestion_at_its_place(
    words: tuple[str, ...], slip: Callable[[str], str]
) -> None:
    meant = misspelt(SECTIONS[words], slip)
    if not meant:
        return
    text, line, column = text_of(words, list(meant))
    found = complaints(text)
    told = [(each.at.line, each.at.column, each.at.width, each.hint) for each in found if each.at is not None]
    assert told == [
        (line + index, column, len(word), f"did you mean {name}?") for index, (word, name) in enumerate(meant.items())
    ]
    section = "section" if words == ("spec",) else "setting"
    assert all(f"is not a {section} of" in each.cause for each in found)


def test_the_slips_reach_every_field() -> None:
    reached = {name for model in SECTIONS.values() for slip in SLIPS for name in misspelt(model, slip).values()}
    assert reached == {name for name in FIELDS if len(name) > 1}
    assert sum(len(misspelt(model, slip)) for model in SECTIONS.values() for slip in SLIPS) > 1000


@pytest.mark.parametrize("slip", [drop, double, swap, replace, shouted], ids=lambda each: each.__name__)
def test_parameters_of_a_search_and_its_distributions(slip: Callable[[str], str]) -> None:
    for kind in PARAMETERS:
        check_distribution(kind, slip)


def check_distribution(kind: str, slip: Callable[[str], str]) -> None:
    names = PARAMETERS[kind]
    right = {name: "[0.5, 0.9]" if name == "values" else str(0.5 + index / 10) for index, name in enumerate(names)}
    for name in (*(each for each in names if len(each) > 2), "dist"):
        body = {"dist": kind, **right}
        inside = ", ".join(f"{slip(key) if key == name else key}: {value}" for key, value in body.items())
        assert search_hint(f"agent.algorithm.gamma: {{{inside}}}") == f"did you mean {name}?"
    if slip(kind) not in PARAMETERS:
        hint = search_hint(f"agent.algorithm.gamma__{slip(kind)}: [0.5, 0.9]")
        assert hint == f"did you mean {kind}?"


def search_hint(entry: str) -> str:
    document = read_yaml(Source(f"search:\n  {entry}\n", "spec.yaml"))
    (problem,) = search_diagnostics(document)
    assert problem.at is not None
    assert problem.at.line == 2
    return problem.hint


WHOLE_FILE = """\
nme: x
env: {num_env: 2}
agent: {algorithm: {time_horizn: 8}, net: {hiden: [8], optimiser: {lr: 1e-3}}}
meta: {log-frequency: 10}
"""
SLIPPED = {
    "nme": "name",
    "num_env": "num_envs",
    "time_horizn": "time_horizon",
    "hiden": "hidden",
    "optimiser": "optimizer",
    "log-frequency": "log_frequency",
}


def test_a_file_is_told_with_line_and_column() -> None:
    Path("spec.yaml").write_text(WHOLE_FILE)
    with pytest.raises(SpecError) as caught:
        load("spec.yaml")
    said = str(caught.value)
    for typed, meant in SLIPPED.items():
        before = WHOLE_FILE[: WHOLE_FILE.index(typed)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert f"spec.yaml:{line}:{column}" in said
        assert f"did you mean {meant}?" in said
