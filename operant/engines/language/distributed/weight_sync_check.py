"""On-policy by proof: every weight sync is checked before anything is written with the new weights.

Trainer and generator are compared in two ways. Fingerprints say whether the weights arrived, bit by bit. Then the
generator draws tokens after a few fixed prompts, and the trainer says how likely it finds them: their divergence is
the metric `mismatch/probe_kl`. Its limit comes from the rounding of the precision in use, measured at the start of the
run on the trainer's own weights by two ways of computing them. What fails is sent once more; then the run stops.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from operant.engines.language.generation.generator import Completion, Generator, Probe, Prompt, Sampling
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.batching import Sample
from operant.engines.language.policy.fingerprint import Fingerprint, fingerprint
from operant.engines.language.policy.scoring import next_token_logprobs
from operant.engines.language.policy.weights import plain_weights
from operant.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.model import Policy

TEXTS = ("Question: 17 + 25?\nAnswer:", "def area(w, h):\n    return", "The capital of France is", "[1, 2, 3, 5, 8,")
LENGTH = 12
DRAWS = 16
FACTOR = 16.0
"""How many times the measured rounding log-probabilities may differ by: other kernels and devices round otherwise."""
PROBE_KL = "mismatch/probe_kl"


@dataclass(frozen=True)
class SentWeights:
    """What a generator should hold and find likely: `logprobs` [prompts, vocabulary] are the trainer's, on the CPU.

    `policy` has these weights, or is None where they may have changed since.
    """

    version: int
    fingerprint: Fingerprint
    logprobs: Tensor
    policy: Policy | None = None


class WeightSyncCheck:
    """Hands weights over and checks that they arrived (final). Any thread may sync, one at a time does.

    `limit` is the largest divergence allowed, in nats per token; None for the one that the precision implies.
    """

    def __init__(
        self, policy: Policy, temperature: float, limit: float | None, tell: Callable[[str, str], object]
    ) -> None:
        self.policy = policy
        self.limit = limit
        self.tell = tell
        self.prompts = probe_prompts(policy)
        self.sampling = Sampling(DRAWS, temperature)
        self._stops = StopStrings(copy.deepcopy(policy.tokenizer))
        self._lock = threading.Lock()
        self._rounding: float | None = None

    def send(self, version: int) -> SentWeights:
        """The trainer's side of a sync: what its weights are, and say, now."""
        samples = [Sample(prompt.tokens, (self.policy.pad_id,)) for prompt in self.prompts]
        logprobs = next_token_logprobs(self.policy, samples, self.sampling.temperature).cpu()
        sent = SentWeights(version, _fingerprint(self.policy), logprobs, self.policy)
        if self._rounding is None:
            self._rounding = self._measured_rounding(sent)
        return sent

    def sync(self, generator: Generator, weights: Mapping[str, Tensor], sent: SentWeights) -> dict[str, float]:
        """Load weights, twice if need be, and return the metrics; `RunError` says what the generator has instead."""
        fault = ""
        for attempt in (1, 2):
            fault, found = self._handed_over(generator, weights, sent)
            if not fault:
                return {PROBE_KL: found}
            if attempt == 1:
                self.tell("resent", f"weights of version {sent.version} are sent once more: {fault}")
        raise RunError(f"weights of version {sent.version} were sent twice: {fault}", remedy=REMEDY)

    def _handed_over(self, generator: Generator, weights: Mapping[str, Tensor], sent: SentWeights) -> tuple[str, float]:
        """What went wrong with one sending, and the divergence found."""
        try:
            # Another mapping each time, so that nothing on the way takes a second sending for the first.
            generator.load(dict(weights), sent.version)
        except RunError as refused:
            return refused.cause, math.inf
        return self._checked(generator.probe(self.prompts, self.sampling), sent)

    def allowed(self, sent: SentWeights) -> float:
        """The largest divergence that rounding explains; it grows with the logits, as their rounding does."""
        if self.limit is not None:
            return self.limit
        assert self._rounding is not None
        return (FACTOR * self._rounding * _scale(sent)) ** 2 / 2

    def _checked(self, probes: Sequence[Probe], sent: SentWeights) -> tuple[str, float]:
        """What is wrong with the first holder that something is wrong with, and the largest divergence."""
        worst = 0.0
        for probe in probes:
            fault = self._not_arrived(probe, sent) or self._misread(probe, sent)
            found = divergence(probe.completions, sent.logprobs)
            worst = max(worst, found)
            if not fault and not found <= self.allowed(sent):
                fault = self._disagreement(probe, sent, found)
            if fault:
                return f"{probe.name} {fault}", worst
        return "", worst

    def _not_arrived(self, probe: Probe, sent: SentWeights) -> str:
        if probe.version != sent.version:
            return f"has version {probe.version}, so the weights did not arrive"
        if probe.fingerprint is None:
            return ""
        expected = sent.fingerprint
        if probe.fingerprint.precisions != expected.precisions and sent.policy is not None:
            expected = _fingerprint(sent.policy, probe.fingerprint.precisions)
        differing = probe.fingerprint.differing(expected)
        if not differing:
            return ""
        names = ", ".join(differing[:2]) + (" .." if len(differing) > 2 else "")
        count = f"{len(differing)} of {len(expected.sums)} tensors ({names})"
        return f"has another fingerprint of {count}, so the weights did not arrive"

    def _misread(self, probe: Probe, sent: SentWeights) -> str:
        """Whether the generator's tokens are not the trainer's."""
        if probe.fingerprint is not None and probe.fingerprint.tokenizer != sent.fingerprint.tokenizer:
            return "has another tokenizer: its vocabulary is not the trainer's"
        with self._lock:
            for made in (made for row in probe.completions for made in row):
                text = self._stops.text(made.tokens, ())
                if replace(made, text=text).text != made.text:
                    return f"has another tokenizer: it reads tokens {made.tokens} as {made.text!r}, not as {text!r}"
        return ""

    def _disagreement(self, probe: Probe, sent: SentWeights, found: float) -> str:
        """What a divergence beyond its limit means, from what else is known."""
        words = f"finds its tokens likelier or less likely than the trainer does: {PROBE_KL} is {found:.3g}"
        words += f" nats per token, above {self.allowed(sent):.3g}"
        if probe.fingerprint is None:
            return f"{words}; it has no fingerprint, so either its weights or its arithmetic differ"
        held, own = set(probe.fingerprint.precisions.values()), set(sent.fingerprint.precisions.values())
        if held != own:
            return f"{words}, though the weights arrived: it computes in {_listed(held)}, the trainer in {_listed(own)}"
        drawn = fitting_temperature(probe.completions, sent.logprobs, self.sampling.temperature)
        if drawn is not None:
            return (
                f"{words}, though the weights arrived: it seems to draw at temperature {drawn:.3g}"
                f" instead of {self.sampling.temperature:g}"
            )
        return f"{words}, though the weights arrived: its arithmetic has another precision or is wrong"

    def _measured_rounding(self, sent: SentWeights) -> float:
        """By how much of their scale the trainer's log-probabilities change if the built-in decoder computes them.

        Where both come to the same bits, what representing them rounds off.
        """
        other = TorchGenerator(self.policy, slots=len(self.prompts) * DRAWS, graphs=False)
        found = divergence(other.generate(self.prompts, self.sampling), sent.logprobs)
        other.close()
        weight = next(self.policy.model.parameters())
        # Half a unit in the last place of a result in float32, and of the many that add up to it in its own precision.
        least = max(torch.finfo(torch.float32).eps / 2, torch.finfo(weight.dtype).eps / 32)
        return max(math.sqrt(2 * found) / _scale(sent), least)


REMEDY = "the same weights, tokenizer, temperature and precision there; or a larger agent.algorithm.probe_limit"


def probe_prompts(policy: Policy) -> list[Prompt]:
    """Fixed prompts, after each of which one token is drawn."""
    most = min(LENGTH, policy.context - 1)
    texts = (policy.tokenizer(text, add_special_tokens=False).input_ids for text in TEXTS)
    return [Prompt(tuple(tokens[:most]), 1) for tokens in texts]


def divergence(completions: Sequence[Sequence[Completion]], logprobs: Tensor) -> float:
    """KL(generator || trainer) by the tokens that the generator drew after each prompt (k3), in float64."""
    tokens = torch.tensor([[made.tokens[0] for made in row] for row in completions])
    theirs = torch.tensor([[made.logprobs[0] for made in row] for row in completions], dtype=torch.float64)
    difference = logprobs.gather(1, tokens).double() - theirs
    return max(0.0, float((torch.expm1(difference) - difference).mean()))


def fitting_temperature(
    completions: Sequence[Sequence[Completion]], logprobs: Tensor, temperature: float
) -> float | None:
    """Another temperature that makes the trainer agree a hundred times better with what was drawn, if there is one."""
    others = [temperature * 1.01**step for step in range(-140, 141)]
    found = {
        other: divergence(completions, torch.log_softmax(logprobs * (temperature / other), -1)) for other in others
    }
    best = min(found, key=found.__getitem__)
    return best if 100 * found[best] < divergence(completions, logprobs) else None


def _scale(sent: SentWeights) -> float:
    """The size of the numbers that are rounded: how far down log-probabilities reach."""
    return float(-sent.logprobs.min(-1).values.mean())


def _fingerprint(policy: Policy, precisions: Mapping[str, str] | None = None) -> Fingerprint:
    return fingerprint(plain_weights(policy.model, tied=True), policy, precisions)


def _listed(names: set[str]) -> str:
    return " and ".join(sorted(names))
