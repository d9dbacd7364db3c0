"""The learner: credited completions become gradients and steps.

The ratio of a first step is exactly 1: the log-probabilities that ratios compare with are the trainer's own, computed
in the same micro-batches, and those of the generator serve to watch, and where asked to correct, the difference.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from operant.engines.language.lessons import Lesson, lessons_of
from operant.engines.language.logprobs import token_logprobs
from operant.engines.language.losses import LossSettings, Normaliser, Tokens, policy_loss
from operant.engines.language.model import Policy
from operant.engines.language.optimise import Optimiser
from operant.engines.language.pack import Batch, Sample, micro_batches
from operant.engines.language.rollout import Group
from operant.engines.language.settings import loss_settings
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.language import ModelSpec
from operant.spec.rlvr import VerifiedAlgorithm

MEANS = {
    "ratio": "policy/ratio",
    "kl": "policy/kl",
    "clipped": "policy/clip_fraction",
    "masked": "policy/masked",
    "entropy": "policy/entropy",
    "reference_kl": "policy/reference_kl",
}


@dataclass
class Piece:
    """One micro-batch, and for each of its completion tokens what the loss needs to know."""

    batch: Batch
    advantages: Tensor
    generator: Tensor
    old: Tensor | None = None
    reference: Tensor | None = None


@dataclass(frozen=True)
class Report:
    """What came of a round: gradient steps taken, and means to log."""

    steps: int = 0
    means: dict[str, float] = field(default_factory=dict)


class Learner:
    """Trains a policy's weights by one of the family's losses (final); `beat` is called with every pass."""

    def __init__(self, policy: Policy, settings: VerifiedAlgorithm, model: ModelSpec, seeds: Seeds) -> None:
        self.policy = policy
        self.settings = settings
        self.seeds = seeds
        self.optimiser = Optimiser(policy.model, model.optimizer)
        self.device = next(policy.model.parameters()).device
        self.reference: nn.Module | None = None
        self.beat: Callable[[], object] = lambda: None

    def remember_reference(self) -> None:
        """Keep the policy as it is now to measure the divergence from, where the spec asks for that."""
        if self.settings.kl != "none":
            self.reference = copy.deepcopy(self.policy.model).eval().requires_grad_(False)

    def learn(self, groups: Sequence[Group], at: Progress, budget: int, gold: Sequence[Sample] = ()) -> Report:
        """Take a round's gradient steps, from where a run of `budget` frames now is; `gold` is imitated beside it."""
        settings, update, share = self.settings, at.updates, at.frames / budget
        lessons = lessons_of(groups, settings)
        if not lessons:
            return Report()
        size = settings.step_size
        steps = [self._pieces(lessons[at : at + size]) for at in range(0, len(lessons), size)]
        several = len(steps) * settings.training_epoch > 1
        self._prepare([piece for step in steps for piece in step], several)
        sums: defaultdict[str, float] = defaultdict(float)
        norms: list[float] = []
        for epoch in range(settings.training_epoch):
            for index in self.seeds.rng("minibatches", update, epoch).permutation(len(steps)):
                self._gradients(steps[index], loss_settings(settings, at.frames), sums)
                if gold:
                    sums["sft"] += self.imitate(gold, settings.sft_coef)
                norms.append(self.optimiser.step(update + len(norms), share))
        return Report(len(norms), self._means(sums, norms))

    def imitate(self, samples: Sequence[Sample], weight: float = 1.0) -> float:
        """Add the gradients of the mean negative log-probability of given completions; returns that mean."""
        total = sum(len(sample.completion) for sample in samples)
        summed = 0.0
        for batch in self._batches(samples):
            loss = -token_logprobs(self.policy.model, batch).logprobs.sum() / total
            (weight * loss).backward()
            summed += float(loss.detach())
        return summed

    def _gradients(self, pieces: Sequence[Piece], loss: LossSettings, sums: defaultdict[str, float]) -> None:
        """Add the gradients of all micro-batches of a minibatch."""
        whole = Normaliser(
            tokens=sum(len(piece.batch.targets) for piece in pieces),
            sequences=sum(len(piece.batch.samples) for piece in pieces),
        )
        found: list[dict[str, Tensor]] = []
        for piece in pieces:
            scores = token_logprobs(
                self.policy.model, piece.batch, self.settings.temperature, entropy=bool(loss.entropy_coef)
            )
            old = scores.logprobs.detach() if piece.old is None else piece.old
            tokens = Tokens(
                logprobs=scores.logprobs,
                old=old,
                generator=piece.generator,
                advantages=piece.advantages,
                owner=piece.batch.owner,
                reference=piece.reference,
                entropies=scores.entropies,
            )
            share_of_loss = policy_loss(tokens, loss, whole)
            share_of_loss.value.backward()
            self.beat()
            found.append({**share_of_loss.sums, "loss": share_of_loss.value.detach() * whole.tokens})
        for key in found[0]:
            sums[key] += float(torch.stack([each[key].float() for each in found]).sum())

    @torch.no_grad()
    def _prepare(self, pieces: Sequence[Piece], several: bool) -> None:
        """Log-probabilities before the first step: of the policy where more steps follow, and of the reference."""
        for piece in pieces:
            self.beat()
            if several:
                piece.old = token_logprobs(self.policy.model, piece.batch, self.settings.temperature).logprobs
            if self.reference is not None:
                piece.reference = token_logprobs(self.reference, piece.batch, self.settings.temperature).logprobs

    def _pieces(self, lessons: Sequence[Lesson]) -> list[Piece]:
        """Micro-batches of a minibatch, with each token's advantage and the generator's log-probability."""
        advantages = torch.tensor([lesson.advantage for lesson in lessons], device=self.device)
        pieces = []
        for batch in self._batches([lesson.sample for lesson in lessons]):
            drawn = [value for index in batch.samples for value in lessons[index].logprobs]
            generator = torch.tensor(drawn, dtype=torch.float32, device=self.device)
            pieces.append(Piece(batch, advantages[batch.owner], generator))
        return pieces

    def _batches(self, samples: Sequence[Sample]) -> list[Batch]:
        made = micro_batches(samples, self.settings.pass_tokens, pad_id=self.policy.pad_id)
        return [batch.to(self.device) for batch in made]

    def _means(self, sums: defaultdict[str, float], norms: list[float]) -> dict[str, float]:
        tokens = max(sums["tokens"], 1)
        means = {name: sums[key] / tokens for key, name in MEANS.items() if key in sums}
        return {
            "loss/policy": sums["loss"] / tokens,
            **means,
            **({"loss/sft": sums["sft"] / len(norms)} if "sft" in sums else {}),
            "mismatch/kl": sums["mismatch_kl"] / tokens,
            "optim/grad_norm": sum(norms) / len(norms),
            "optim/lr": self.optimiser.rate,
        }
