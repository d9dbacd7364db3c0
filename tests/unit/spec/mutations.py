"""Spec texts broken in every way that a seed can think of: bytes of a file, overrides, and flags of another trainer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from random import Random

LARGEST = 1_000_000
DIALECTS = Path(__file__).parent / "dialects"
TOKENS = (
    "[", "]", "{", "}", "[[[[", "- - - ", ":", ": ", "? ", ",", "#", "&a ", "*a", "<<: *a\n", "!!int ", "!x ", "|", ">",
    "'", '"', '"""', "'''", "\\", "\\ud800", '"\\ud800"', "\\u0000", "\0", "\t", "\r", "\r\n", "\n", "\n\n", "---\n",
    "\ufeff", "\u2028", "\x85", "\x1b", "漢字", "😀", "é", "${x}", "${x:-1}", "${x:-[}", "${", "%YAML 9.9\n", "=",
    "[a.b]\n", "[[a]]\n", "a.b.c = 1\n", "null", "true", "no", ".nan", ".inf", "-.inf", "nan", "NaN", "Infinity",
    "1e400000", "-1e400", "1e308", "9" * 5000, "9" * 90, "0x" + "f" * 4000,
    "-1", "0", "0.0", "1_0", "012", "1979-05-27",
    "x" * 3000, "env", "agent", "search", "meta", "orchestrator", "max_frame", "name", "__uniform", "__choice", "''",
)  # fmt: skip
VALUES = (0, -1, 1, 10**18, 1e308, -0.5, True, None, "", "x", [], {}, [[]], {"a": {}}, [1, "x"], "${x}", "9" * 99)
OVERRIDES = (
    "env.num_envs=8", "agent.algorithm.gamma=0.9", "agent.net.hidden=[8, 8]", "agent.algorithm.epsilon.end=0.1",
    "name=x", "env.kwargs={a: 1}", "search={agent.algorithm.gamma__uniform: [0, 1]}", "x=3", "env={num_envs: 2}",
)  # fmt: skip
FLAGS = (
    "--num-envs 256 --num-steps=128 --num-minibatches 4", "--lr 3e-4 --gamma=0.99 --ent-coef 0.1 --no-wandb",
    "--hidden-dim 64 --num-layers 2 --total-timesteps 1_000_000 --seed 3", "--run-name 'a b' --save-interval-minutes 5",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A file of this content and ending, with overrides; or, where there is no ending, flags."""

    content: bytes
    suffix: str
    overrides: list[str] = field(default_factory=list)
    lossy: bool = False


def corpus() -> list[tuple[str, str]]:
    """Whole and valid texts to begin with, each with the ending of its file."""
    shipped = [(each.read_text(), ".yaml") for each in (files("operant") / "specs").iterdir()]
    foreign = [each for name in ("files", "slm/files") for each in (DIALECTS / name).iterdir() if each.is_file()]
    return sorted([*shipped, *((each.read_text(), each.suffix) for each in foreign), (NATIVE_TOML, ".toml")])


NATIVE_TOML = """
name = "a"
[env]
name = "CartPole-v1"
kwargs = {render_mode = "x", sizes = [1, 2]}
[agent.algorithm]
name = "dqn"
epsilon = {start = 1.0, end = 0.1, frames = 1000}
[agent.net]
hidden = [64, 64]
[search]
"agent.algorithm.gamma__uniform" = [0.9, 0.99]
"""


def mutated(rng: Random, texts: list[tuple[str, str]]) -> Case:
    """The next case that the random numbers give."""
    if rng.random() < 0.05:
        return Case(_broken(rng, rng.choice(FLAGS), _size(rng)).encode("utf-8", "surrogatepass"), "")
    text, suffix = rng.choice(texts)
    if rng.random() < 0.3 and suffix == ".json":
        text = _changed_values(rng, text)
    text = rng.choice((_broken, _broken, _broken, _grown))(rng, text, _size(rng))
    count = rng.choice((0, 0, 0, 1, 2, 5))
    overrides = [_broken(rng, rng.choice(OVERRIDES), _size(rng) // 10) for _ in range(count)]
    return Case(_encoded(rng, text), suffix, overrides, rng.random() < 0.5)


def _size(rng: Random) -> int:
    """Mostly that of a spec, sometimes any up to the largest."""
    return int(10 ** rng.uniform(1, 6)) if rng.random() < 0.05 else int(10 ** rng.uniform(1, 3.7))


def _broken(rng: Random, text: str, size: int) -> str:
    """The text with pieces left out, doubled, moved and put in; now and then one of them many times."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at, end = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        piece = rng.choice((text[at:end][:200], rng.choice(TOKENS), rng.choice(TOKENS)))
        end = min(end, at + 20)
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + piece + text[end:]
        elif kind == 2:
            text = text[:at] + piece + text[at:]
        elif kind == 3:
            text = text[:at] + piece * (size // max(len(piece), 1)) + text[at:]
        else:
            text = text[:at]
    return text[:LARGEST]


def _grown(rng: Random, text: str, size: int) -> str:
    """The text with a shape of its own kind that goes on for long."""
    shapes: tuple[Callable[[int], str], ...] = (
        lambda i: f"k{i}: {i}\n",
        lambda i: f"  k{i}: {{a: [1, 2]}}\n",
        lambda i: f"k{i} = {i}\n",
        lambda i: f"[t{i}.a.b]\nx = 1\n",
        lambda i: f"[[t]]\nx = {i}\n",
        lambda i: f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" if i else "a0: &a0 [1]\n",
        lambda i: f"s{i}: {{<<: *base, env: {{}}}}\n" if i else "_b: &base {name: x}\n",
        lambda i: f"{'  ' * (i % 300)}k:\n",
        lambda i: f"k{i}: ${{p{i}:-{i}}}\n",
        lambda i: f'"k{i}": {i}, ',
        lambda i: f"agent.k{i}__uniform: [0, {i}]\n",
        lambda i: '"""\\',
        lambda i: '\\""" x\n',
        lambda i: "{a: [",
    )
    shape = rng.choice(shapes)
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(shape(len(parts)))
        length += len(parts[-1])
    grown = "".join(parts)
    return (grown if rng.random() < 0.5 else f"{text}\n{grown}")[:LARGEST]


def _changed_values(rng: Random, text: str) -> str:
    """JSON of the same shape, some of whose values are others."""

    def changed(data: object) -> object:
        if rng.random() < 0.03:
            return rng.choice(VALUES)
        if isinstance(data, dict):
            return {key: changed(value) for key, value in data.items()}
        return [changed(value) for value in data] if isinstance(data, list) else data

    try:
        return json.dumps(changed(json.loads(text)))
    except ValueError:
        return text


def _encoded(rng: Random, text: str) -> bytes:
    encoding = rng.choice(("utf-8",) * 20 + ("utf-16", "utf-16-be", "utf-8-sig", "latin-1"))
    return text.encode(encoding, "replace")
