"""What passes between a generator and its users: prompts as tokens, completions with their log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from operant.envs.text.well_formed import well_formed

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.fingerprint import Fingerprint
    from operant.engines.language.policy.sampling_mask import SamplingMask

Finish = Literal["stop", "length", "abort"]


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: `n` completions of each prompt; temperature 0 takes the likeliest token.

    The same seed gives the same completions whatever else is generated beside them. Completions that are not
    done `seconds` after the call are given up, and come back as aborted. `min_p` leaves out tokens that are less likely
    than this part of the likeliest. With `keep_mask` completions carry what truncated sampling left to draw from.
    """

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    seconds: float | None = None
    min_p: float = 0.0
    keep_mask: bool = False

    @property
    def truncates(self) -> bool:
        """Whether some tokens are never drawn, however the chance falls."""
        return self.temperature > 0 and bool(self.top_p < 1 or self.top_k or self.min_p)

    @property
    def masks(self) -> bool:
        """Whether completions carry a sampling mask."""
        return self.keep_mask and self.truncates


@dataclass(frozen=True)
class Prompt:
    """A prompt in tokens; `stop` are texts after which generation ends.

    Prompts of the same tokens get the same completions under one seed, unless their `salt` differs.
    """

    tokens: tuple[int, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    salt: int = 0


@dataclass(frozen=True)
class Completion:
    """Tokens that were generated, end-of-text token and stop string included, each with its log-probability.

    A log-probability is that of the model's logits divided by the temperature (1 where it is 0), over the whole
    vocabulary, or over the tokens that the `mask` keeps where there is one. `text` is without special tokens and cut
    before the stop string. `version` counts the updates of the weights that wrote it.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish: Finish
    version: int = 0
    mask: SamplingMask | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", well_formed(self.text))


@dataclass(frozen=True)
class Step:
    """One call of the policy: the tokens that it was asked with, and what it wrote."""

    prompt: tuple[int, ...]
    completion: Completion


@dataclass(frozen=True)
class Probe:
    """What one holder of weights says of them: their version, their fingerprint, and what it writes with them.

    A generator that cannot say what it holds has no fingerprint.
    """

    name: str
    version: int
    fingerprint: Fingerprint | None
    completions: list[list[Completion]]


class Listener(Protocol):
    """Hears completions as they end: the `index`-th of the prompt with the number `prompt`.

    One that `follows` also hears them being written, a few tokens at a time.
    """

    @property
    def follows(self) -> bool:
        """Whether `progress` is called."""
        ...

    def wants(self, prompt: int) -> bool:
        """Whether completions of a prompt are still waited for; those that are not are given up."""
        ...

    def progress(self, prompt: int, index: int, tokens: Sequence[int], logprobs: Sequence[float]) -> None:
        """All that is written so far; more will come."""
        ...

    def done(self, prompt: int, index: int, completion: Completion) -> None:
        """The whole completion."""
        ...


class Generator(Protocol):
    """Writes completions."""

    def generate(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts."""
        ...

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Take over weights, by Hugging Face's names; what is generated from now on has this version."""
        ...

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What every replica holds, and writes to these prompts."""
        ...

    def close(self) -> None:
        """Let go of processes and memory."""
        ...
