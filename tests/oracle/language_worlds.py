"""Worlds so small that every text can be listed: expectations are sums, and gradients of them are exact."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from operant.engines.language.learning.losses import LossSettings, Normalizer, Tokens, policy_loss

VOCABULARY = 3
END = 0
ONE = Normalizer(tokens=1, sequences=1)


@dataclass(frozen=True)
class Text:
    """A text: its tokens, and for each the number of the state (what was written so far) in which it is drawn."""

    tokens: tuple[int, ...]
    states: tuple[int, ...]


@dataclass(frozen=True)
class World:
    """All texts that end by `END` or after so many tokens; a policy is a table of logits, a row for each state."""

    texts: tuple[Text, ...]
    states: int

    def logprobs(self, logits: Tensor, text: Text) -> Tensor:
        """The log-probability of each token of a text."""
        return torch.log_softmax(logits, -1)[list(text.states), list(text.tokens)]

    def chance(self, logits: Tensor, text: Text) -> Tensor:
        """The probability of a text."""
        return self.logprobs(logits, text).sum().exp()

    def visits(self, logits: Tensor) -> Tensor:
        """How often each state is met, on average, in one text; without gradient."""
        found = torch.zeros(self.states, dtype=torch.float64)
        for text in self.texts:
            found[list(text.states)] += self.chance(logits.detach(), text)
        return found

    def policy(self, seed: int) -> Tensor:
        """Some policy."""
        draw = torch.Generator().manual_seed(seed)
        return torch.randn(self.states, VOCABULARY, generator=draw, dtype=torch.float64)


def world(longest: int) -> World:
    """The world of texts of at most so many tokens."""
    states: dict[tuple[int, ...], int] = {(): 0}
    texts: list[Text] = []
    for written in product(range(VOCABULARY), repeat=longest):
        length = written.index(END) + 1 if END in written else longest
        tokens = written[:length]
        if any(text.tokens == tokens for text in texts):
            continue
        starts = [tokens[:place] for place in range(length)]
        texts.append(Text(tokens, tuple(states.setdefault(start, len(states)) for start in starts)))
    return World(tuple(texts), len(states))


@dataclass(frozen=True)
class Policies:
    """Who is in training, whom ratios compare with, who wrote the texts, and who is fixed: tables of logits."""

    trained: Tensor
    old: Tensor
    wrote: Tensor
    fixed: Tensor | None = None


def expected_gradient(
    here: World, who: Policies, advantages: Tensor, settings: LossSettings, whole: Normalizer = ONE
) -> Tensor:
    """The gradient of `policy_loss`, on average over the texts of whoever wrote them."""
    logits = who.trained.detach().clone().requires_grad_()
    total = torch.zeros((), dtype=torch.float64)
    for number, text in enumerate(here.texts):
        rows = torch.log_softmax(logits, -1)[list(text.states)]
        fixed = None if who.fixed is None else here.logprobs(who.fixed, text)
        tokens = Tokens(
            logprobs=here.logprobs(logits, text),
            old=here.logprobs(who.old, text).detach(),
            generator=here.logprobs(who.wrote, text).detach(),
            advantages=advantages[number].expand(len(text.tokens)),
            owner=torch.zeros(len(text.tokens), dtype=torch.int64),
            reference=fixed,
            teacher=fixed,
            entropies=-(rows.exp() * rows).sum(-1),
        )
        total = total + here.chance(who.wrote, text).detach() * policy_loss(tokens, settings, whole).value
    (slope,) = torch.autograd.grad(total, logits)
    return slope
