"""This engine as a model of lm-evaluation-harness: its requests are texts, answered without a server in between.

Only `harness.py` loads this module, once it knows that the package is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from lm_eval.api.model import LM  # pyright: ignore[reportMissingImports]
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window  # pyright: ignore[reportMissingImports]

from operant.engines.language.generation.generator import Generator, Prompt, Sampling
from operant.engines.language.policy.chat_template import encode
from operant.engines.language.policy.model import Policy
from operant.engines.language.policy.scoring import score_texts

MAX_TOKENS = 256
"""What a task gets that does not say how much it wants, as everywhere in the harness."""

Pair = tuple[Sequence[int], Sequence[int]]


class OperantModel(LM):
    """A policy and whoever writes its completions, under the three methods of the harness (final)."""

    def __init__(self, policy: Policy, generator: Generator) -> None:
        super().__init__()
        self.policy = policy
        self.generator = generator

    @property
    def tokenizer_name(self) -> str:
        """What the harness writes into its records."""
        return self.policy.name

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """The text written after each context, up to its stop strings."""
        del disable_tqdm
        alike: dict[Sampling, list[int]] = defaultdict(list)
        prompts = []
        for number, request in enumerate(requests):
            context, wishes = request.args
            prompts.append(self._prompt(context, wishes))
            alike[_sampling(wishes)].append(number)
        texts: dict[int, str] = {}
        for sampling, numbers in alike.items():
            written = self.generator.generate([prompts[number] for number in numbers], sampling)
            texts |= {number: row[0].text for number, row in zip(numbers, written, strict=True)}
        return [texts[number] for number in range(len(requests))]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """How likely each continuation is after its context, and whether it is what greedy writing gives."""
        del disable_tqdm
        return self._likelihoods([self._pair(*request.args) for request in requests])

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """How likely whole texts are, those that are longer than the context window by window."""
        del disable_tqdm
        found = []
        for request in requests:
            tokens = list(self.policy.tokenizer(request.args[0], add_special_tokens=False).input_ids)
            windows = get_rolling_token_windows(tokens, self._begin, self.policy.context, 1)
            parts = self._likelihoods([make_disjoint_window(window) for window in windows])
            found.append(sum(value for value, _ in parts))
        return found

    @property
    def _begin(self) -> int:
        """The token before a text that has nothing before it."""
        return self.policy.eos_ids[0] if self.policy.bos_id is None else self.policy.bos_id

    def _prompt(self, context: str, wishes: dict[str, Any]) -> Prompt:
        until = wishes.get("until") or ()
        stop = (until,) if isinstance(until, str) else tuple(until)
        return Prompt(encode(context, self.policy), int(wishes.get("max_gen_toks", MAX_TOKENS)), stop)

    def _pair(self, context: str, continuation: str) -> Pair:
        """Tokens of both, split where the context ends; its last spaces belong to the word that follows them."""
        bare = context.rstrip()
        before = encode(bare, self.policy) if bare else (self._begin,)
        whole = encode(bare + context[len(bare) :] + continuation, self.policy)
        if not bare:
            return before, whole[1:] if whole[:1] == before else whole
        return before, whole[len(before) :]

    def _likelihoods(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """Sums over the second of each pair; what does not fit the model's context is left out at the beginning."""
        texts = [(*before, *after)[-self.policy.context - 1 :] for before, after in pairs]
        found = []
        for (_, after), text, scored in zip(pairs, texts, score_texts(self.policy, texts, top=1), strict=True):
            start = max(1, len(text) - len(after))
            values = [value for value in scored.logprobs[start:] if value is not None]
            greedy = all(best[0][0] == token for best, token in zip(scored.best[start:], text[start:], strict=True))
            found.append((sum(values), greedy))
        return found


def _sampling(wishes: dict[str, Any]) -> Sampling:
    """Greedy unless a task asks for chance."""
    if not wishes.get("do_sample", float(wishes.get("temperature") or 0) > 0):
        return Sampling(temperature=0.0)
    return Sampling(1, float(wishes.get("temperature", 1.0)), float(wishes.get("top_p", 1.0)))
