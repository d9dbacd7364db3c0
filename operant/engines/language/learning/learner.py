"""The learner: credited completions become gradients and steps.

Where ratios compare with the trainer's own log-probabilities the ratio of a first step is exactly 1: they are computed
in the same micro-batches, and those of the generator serve to watch, and where asked to correct, the difference. What
the generator wrote with other weights is compared with the generator's.

All completions of a round have the same influence: each of its k steps divides by a k-th of the round, whatever share
of its tokens it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from operant.engines.language.distributed.fsdp import Scorer, frozen_copy, spread, whole
from operant.engines.language.distributed.ranks import Ranks, together
from operant.engines.language.generation.activation_cache import Recall
from operant.engines.language.learning import checkpoint as codec
from operant.engines.language.learning.loss_settings import loss_settings
from operant.engines.language.learning.losses import LossSettings, Normaliser, Tokens, policy_loss
from operant.engines.language.learning.optimizer import Optimiser
from operant.engines.language.learning.samples import Lesson, lessons_of, minibatches
from operant.engines.language.policy.batching import Batch, Sample, micro_batches
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.single_turn import Group
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.settings.language import LmOptimizerSpec, ModelSpec
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

MEANS = {
    "ratio": "policy/ratio",
    "kl": "policy/kl",
    "clipped": "policy/clip_fraction",
    "masked": "policy/masked",
    "entropy": "policy/entropy",
    "reference_kl": "policy/reference_kl",
    "teacher_kl": "policy/teacher_kl",
}


@dataclass
class Piece:
    """One micro-batch, and for each of its completion tokens what the loss needs to know.

    `weight` is 0 for one that is only computed to keep other processes company.
    """

    batch: Batch
    weight: float
    advantages: Tensor
    generator: Tensor
    old: Tensor | None = None
    reference: Tensor | None = None
    teacher: Tensor | None = None


@dataclass(frozen=True)
class Step:
    """A minibatch: this process's micro-batches, and what sums over all of them are divided by."""

    pieces: list[Piece]
    whole: Normaliser


@dataclass(frozen=True)
class Report:
    """What came of a round: gradient steps taken, and means to log."""

    steps: int = 0
    means: dict[str, float] = field(default_factory=dict)


class Learner:
    """Trains a policy's weights by one of the family's losses (final); `beat` is called with every pass.

    Among several processes each trains its slice of `policy`; after every change `written` has the whole weights, with
    which completions are written. Alone, the two are one. A `recall` has what the generator computed. Completions whose
    gradient is zero are counted but not computed, unless it `computes_all`.
    """

    def __init__(
        self,
        policy: Policy,
        settings: VerifiedAlgorithm,
        model: ModelSpec,
        seeds: Seeds,
        ranks: Ranks | None = None,
        written: Policy | None = None,
    ) -> None:
        self.policy = policy
        self.settings = settings
        self.seeds = seeds
        self.ranks = ranks or Ranks()
        self.written = written or policy
        self.scorer = spread(Scorer(policy.model), self.ranks)
        self.optimiser = Optimiser(policy.model, model.optimizer)
        self.device = self.optimiser.weights[0].device
        self.reference: Scorer | None = None
        self.teacher: Scorer | None = None
        self.recall: Recall | None = None
        self.computes_all = False
        self.beat: Callable[[], object] = lambda: None
        self.rehearsed: Callable[[int, int], object] = lambda done, total: None

    @together
    def remember_reference(self) -> None:
        """Keep the policy as it is now to measure the divergence from, where the spec asks for that."""
        if self.settings.kl != "none":
            self.reference = frozen_copy(self.scorer, self.ranks)

    @together
    def rehearse(self, batches: Sequence[Sequence[Sample]], lr: float) -> list[float]:
        """Imitate one batch of given completions after the other; returns the loss of each step."""
        optimiser = Optimiser(self.policy.model, LmOptimizerSpec(lr=lr, lr_end_fraction=0.1))
        losses = []
        for update, samples in enumerate(batches):
            losses.append(self.ranks.total({"sft": self._imitate(samples)})["sft"])
            optimiser.step(update, update / len(batches))
            self.rehearsed(update + 1, len(batches))
        self.optimiser.adopt()
        self._publish()
        return losses

    @together
    def write(self, folder: Path, facts: dict[str, Any]) -> None:
        """Save a checkpoint; the other processes only hand over their part of it."""
        if self.ranks.rank == 0:
            codec.write(folder, self.written, self.optimiser, facts)
        else:
            for part in self.optimiser.parts().values():
                whole(part)

    @together
    def read(self, folder: Path) -> dict[str, Any]:
        """Take up a checkpoint; returns the facts that were saved with it."""
        facts = codec.read(folder, self.policy, self.optimiser)
        self._publish()
        return facts

    @together
    def learn(self, groups: Sequence[Group], at: Progress, budget: int, gold: Sequence[Sample] = ()) -> Report:
        """Take a round's gradient steps, from where a run of `budget` frames now is; `gold` is imitated beside it."""
        settings, update, share = self.settings, at.updates, at.frames / budget
        answers = lessons_of(groups, settings)
        if not answers:
            self._outdate()
            return Report()
        loss = loss_settings(settings, at.frames)
        steps = self._steps(minibatches(answers, settings.step_size), loss)
        self._prepare([piece for step in steps for piece in step.pieces], len(steps) * settings.training_epoch, update)
        sums: defaultdict[str, float] = defaultdict(float)
        norms: list[float] = []
        for epoch in range(settings.training_epoch):
            for index in self.seeds.rng("minibatches", update, epoch).permutation(len(steps)):
                self._gradients(steps[index], loss, update, sums)
                if gold:
                    sums["sft"] += self._imitate(gold, settings.sft_coef)
                norms.append(self.optimiser.step(update + len(norms), share))
                self._outdate()
        self._publish()
        return Report(len(norms), self._means(self.ranks.total(sums), norms))

    @torch.no_grad()
    def _publish(self) -> None:
        """Bring the weights to whoever writes completions with them."""
        self._outdate()
        if self.written is self.policy:
            return
        own = dict(self.written.model.named_parameters())
        for name, weight in self.optimiser.named.items():
            own[name].copy_(whole(weight))

    def _outdate(self) -> None:
        """Let go of what was computed for a round that is over, or with weights that have changed."""
        if self.recall is not None:
            self.recall.forget()

    def _imitate(self, samples: Sequence[Sample], weight: float = 1.0) -> float:
        """Add the gradients of the mean negative log-probability of given completions; returns this process's share."""
        total = sum(len(sample.places) for sample in samples)
        summed = 0.0
        for batch, counts in self._batches(samples):
            loss = -self.scorer(batch, 1.0)[0].sum() * counts / total
            (weight * loss).backward()
            summed += float(loss.detach())
        return summed

    def _gradients(self, step: Step, loss: LossSettings, update: int, sums: defaultdict[str, float]) -> None:
        """Add the gradients of all micro-batches of a minibatch."""
        found: list[dict[str, Tensor]] = []
        for piece in step.pieces:
            logprobs, entropies, watched = self._scored(piece.batch, update, bool(loss.entropy_coef))
            tokens = Tokens(
                logprobs=logprobs,
                old=logprobs.detach() if piece.old is None else piece.old,
                generator=piece.generator,
                advantages=piece.advantages,
                owner=piece.batch.owner,
                reference=piece.reference,
                teacher=piece.teacher,
                entropies=entropies,
                watched=watched,
            )
            share = policy_loss(tokens, loss, step.whole)
            (share.value * piece.weight).backward()
            self.beat()
            own = {**share.sums, "loss": share.value.detach()}
            found.append({key: value.float() * piece.weight for key, value in own.items()})
        for key in found[0]:
            sums[key] += float(torch.stack([each[key] for each in found]).sum())

    def _scored(self, batch: Batch, update: int, entropy: bool = False) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The policy's log-probabilities and entropies, and which of the tokens were computed anew (None: all)."""
        found = None if self.recall is None else self.recall.find(batch, update)
        if self.recall is None or found is None:
            return *self.scorer(batch, self.settings.temperature, entropy), None
        with self.recall.serving(found):
            return *self.scorer(batch, self.settings.temperature, entropy), torch.isin(batch.owner, found.watched)

    @torch.no_grad()
    def _prepare(self, pieces: Sequence[Piece], steps: int, update: int) -> None:
        """Log-probabilities before the first step: what ratios compare with, and those of fixed models.

        The only step of a round compares with itself, so the policy's are computed where more follow.
        """
        temperature, stale = self.settings.temperature, self.settings.compares_with == "generator"
        for piece in pieces:
            self.beat()
            if stale:
                piece.old = piece.generator
            elif steps > 1:
                piece.old = self._scored(piece.batch, update)[0]
            if self.reference is not None:
                piece.reference = self.reference(piece.batch, temperature)[0]
            if self.teacher is not None:
                piece.teacher = self.teacher(piece.batch, temperature)[0]

    def _steps(self, dealt: Sequence[Sequence[Lesson]], loss: LossSettings) -> list[Step]:
        """The minibatches of a round, each of which divides by the same share of the whole round."""
        every = [lesson for lessons in dealt for lesson in lessons]
        tokens = sum(len(lesson.sample.places) for lesson in every)
        whole = Normaliser(tokens / len(dealt), len(every) / len(dealt))
        return [Step(self._pieces(self._computed(lessons, loss)), whole) for lessons in dealt]

    def _computed(self, lessons: Sequence[Lesson], loss: LossSettings) -> Sequence[Lesson]:
        """The lessons that have a gradient, or one of them if none has: a step is taken all the same."""
        if self.computes_all or loss.has_beside:
            return lessons
        return [lesson for lesson in lessons if lesson.advantage] or lessons[:1]

    def _pieces(self, lessons: Sequence[Lesson]) -> list[Piece]:
        """Micro-batches, with each token's advantage and the generator's log-probability."""
        advantages = torch.tensor([lesson.advantage for lesson in lessons], device=self.device)
        pieces = []
        for batch, weight in self._batches([lesson.sample for lesson in lessons]):
            drawn = [value for index in batch.samples for value in lessons[index].logprobs]
            generator = torch.from_numpy(np.array(drawn, dtype=np.float32)).to(self.device)
            pieces.append(Piece(batch, weight, advantages[batch.owner], generator))
        return pieces

    def _batches(self, samples: Sequence[Sample]) -> list[tuple[Batch, float]]:
        """This process's micro-batches, each with the weight it counts with."""
        most = self.ranks.pass_tokens(samples, self.settings.pass_tokens)
        both = self.teacher is None or self.teacher.share_from is not None
        share_from = self.scorer.share_from if both else None
        made = micro_batches(samples, most, pad_id=self.policy.pad_id, share_from=share_from)
        return [(batch.to(self.device), weight) for batch, weight in self.ranks.deal(made)]

    def _means(self, sums: dict[str, float], norms: list[float]) -> dict[str, float]:
        tokens = max(sums["tokens"], 1)
        means = {name: sums[key] / tokens for key, name in MEANS.items() if key in sums}
        return {
            "loss/policy": sums["loss"] / len(norms),
            **means,
            **({"loss/sft": sums["sft"] / len(norms)} if "sft" in sums else {}),
            "mismatch/kl": sums["mismatch_kl"] / tokens,
            "optim/grad_norm": sum(norms) / len(norms),
            "optim/lr": self.optimiser.rate,
        }
