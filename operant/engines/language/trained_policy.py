"""A checkpoint's policy as a function of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from operant.engines.language.config import model_of, settings_of, text_of
from operant.engines.language.generation.build import build_generator
from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.learning.checkpoint import read_weights
from operant.engines.language.policy.build import build_policy
from operant.engines.language.policy.chat_template import Template, encode, render_turns
from operant.errors import UsageError
from operant.run.seeding import Seeds
from operant.spec.schema import Spec

MAX_TOKENS = 512  # where neither the call nor the spec says


class TrainedPolicy:
    """A language model that answers prompts as in its training: the same template, length and temperature."""

    def __init__(self, spec: Spec, seed: int, checkpoint: Path, device: str) -> None:
        model = model_of(spec)
        self._policy = build_policy(model, Seeds(seed), device)
        read_weights(checkpoint, self._policy)
        self._generator = build_generator(self._policy, model)
        self._generator.load({}, 0)
        self._template: Template = model.template
        self._max_tokens = text_of(spec).max_tokens or MAX_TOKENS
        settings = settings_of(spec)
        self._sampling = Sampling(1, settings.temperature, settings.top_p, settings.top_k, min_p=settings.min_p)
        self.seed(0)

    def act(
        self,
        obs: str | Sequence[Mapping[str, Any]],
        deterministic: bool = True,
        mask: None = None,
        stop: Sequence[str] = (),
        max_tokens: int | None = None,
    ) -> str:
        """The answer to a prompt, or to a conversation of messages with `role` and `content`.

        It ends after any text of `stop` or `max_tokens` tokens. Drawn answers differ from call to call.
        """
        turns = [{"role": "user", "content": obs}] if isinstance(obs, str) else obs
        tokens = encode(render_turns(turns, self._policy, self._template), self._policy)
        room = self._policy.context - len(tokens)
        if room < 1:
            raise UsageError(
                f"the prompt has {len(tokens)} tokens, but the model's context is {self._policy.context}",
                remedy="a shorter prompt",
            )
        prompt = Prompt(tokens, min(room, max_tokens or self._max_tokens), tuple(stop))
        drawn = replace(self._sampling, seed=self._seeds.integer("act", self._calls))
        self._calls += not deterministic
        sampling = Sampling(1, temperature=0.0) if deterministic else drawn
        return self._generator.generate([prompt], sampling)[0][0].text

    def reset(self, where: Any = None) -> None:
        """Nothing is remembered between answers: a conversation is given whole."""

    def seed(self, seed: int) -> None:
        """Begin the stream of drawn answers anew."""
        self._seeds, self._calls = Seeds(seed), 0
