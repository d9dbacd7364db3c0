"""The learner: completions with their advantages become gradients and steps.

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

from operant.engines.language.distributed.fsdp import Scorer, full_tensor, shard_model
from operant.engines.language.distributed.ranks import Ranks, on_all_ranks
from operant.engines.language.generation.activation_cache import ActivationCache
from operant.engines.language.learning import checkpoint as checkpoint_files
from operant.engines.language.learning.distillation import likeliest
from operant.engines.language.learning.losses import LossSettings, Normalizer, Tokens, loss_settings, policy_loss
from operant.engines.language.learning.optimizer import Optimizer
from operant.engines.language.learning.reference import Reference
from operant.engines.language.learning.samples import TrainingSample, minibatches, training_samples
from operant.engines.language.policy.batching import Batch, Sample, micro_batches
from operant.engines.language.policy.logprobs import TokenScores
from operant.engines.language.policy.model import Policy
from operant.engines.language.rollouts.types import Group
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schedules import value_at
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
class MicroBatch:
    """One micro-batch, and for each of its completion tokens what the loss needs to know.

    `top` are the teacher's likeliest tokens in each place, with their log-probabilities.

    `weight` is 0 for one that is only computed because all ranks make the same number of passes. `mask` are the packed
    sampling masks of truncated sampling.
    """

    batch: Batch
    weight: float
    advantages: Tensor
    generator: Tensor
    samples: Sequence[TrainingSample] = ()
    mask: Tensor | None = None
    old: Tensor | None = None
    reference: Tensor | None = None
    teacher: Tensor | None = None
    top: tuple[Tensor, Tensor] | None = None


@dataclass(frozen=True)
class Minibatch:
    """A minibatch: this process's micro-batches, and what sums over all of them are divided by."""

    pieces: list[MicroBatch]
    whole: Normalizer


@dataclass(frozen=True)
class Report:
    """What came of a round: gradient steps taken, and means to log."""

    steps: int = 0
    means: dict[str, float] = field(default_factory=dict)


class Learner:
    """Trains a policy's weights by one of the family's losses (final); `beat` is called with every pass.

    Among several processes each trains its shard of `policy`; after every change `full_policy` has the whole weights,
    with which completions are written. In one process the two are the same. An `activation_cache` has what the
    generator computed. Completions whose gradient is zero are counted but not computed, unless it `computes_all`.
    """

    def __init__(
        self,
        policy: Policy,
        settings: VerifiedAlgorithm,
        model: ModelSpec,
        seeds: Seeds,
        ranks: Ranks | None = None,
        full_policy: Policy | None = None,
    ) -> None:
        self.policy = policy
        self.settings = settings
        self.seeds = seeds
        self.ranks = ranks or Ranks()
        self.full_policy = full_policy or policy
        self.scorer = shard_model(Scorer(policy.model), self.ranks)
        self.optimizer = Optimizer(policy.model, model.optimizer)
        self.device = self.optimizer.weights[0].device
        self.reference: Reference | None = None
        self.teacher: Scorer | None = None
        self.teacher_policy: Policy | None = None
        self.activation_cache: ActivationCache | None = None
        self.computes_all = False
        self.drops_out = model.lora is not None and model.lora.dropout > 0
        self.beat: Callable[[], object] = lambda: None
        self.on_supervised_step: Callable[[int, int], object] = lambda done, total: None

    @on_all_ranks
    def snapshot_reference(self) -> None:
        """Keep the policy as it is now to measure the divergence from, where the spec asks for that."""
        if self.settings.kl != "none":
            self.reference = Reference(self.scorer, self.ranks)

    @on_all_ranks
    @torch.no_grad()
    def move_reference(self) -> None:
        """Let the policy as it is now take the reference's place."""
        for name, kept in self._reference_weights().items():
            kept.copy_(self.optimizer.named[name])

    def _reference_weights(self) -> dict[str, Tensor]:
        """What a reference that moves has of its own, by name: the weights that are trained. Nothing for others."""
        return {} if self.reference is None or self.settings.reference_updates is None else self.reference.weights

    @on_all_ranks
    def imitate(self, samples: Sequence[Sample], at: Progress, budget: int) -> Report:
        """Take one gradient step towards given completions, from where a run of `budget` frames now is."""
        self._seed_dropout(at.updates)
        sums = self._supervised_gradients(samples)
        norm = self.optimizer.step(at.updates, at.frames / budget)
        self._publish()
        found = self.ranks.total(sums)
        tokens = sum(len(sample.places) for sample in samples)
        means = {"loss/sft": found["sft"], "sft/accuracy": found["right"] / tokens, "optim/grad_norm": norm}
        return Report(1, {**means, "optim/lr": self.optimizer.rate})

    @on_all_ranks
    def supervised_steps(self, batches: Sequence[Sequence[Sample]], lr: float) -> list[float]:
        """Imitate one batch of given completions after the other; returns the loss of each step."""
        optimizer = Optimizer(self.policy.model, LmOptimizerSpec(lr=lr, lr_end_fraction=0.1))
        losses = []
        for update, samples in enumerate(batches):
            self._seed_dropout(update)
            losses.append(self.ranks.total(self._supervised_gradients(samples))["sft"])
            optimizer.step(update, update / len(batches))
            self.on_supervised_step(update + 1, len(batches))
        self.optimizer.adopt()
        self._publish()
        return losses

    @on_all_ranks
    def write(self, folder: Path, facts: dict[str, Any]) -> None:
        """Save a checkpoint; the other processes only hand over their part of it."""
        if self.ranks.rank == 0:
            kept = {name: full_tensor(weight) for name, weight in self._reference_weights().items()}
            checkpoint_files.write(folder, self.full_policy, self.optimizer, facts, kept)
        else:
            for part in (*self._reference_weights().values(), *self.optimizer.parts().values()):
                full_tensor(part)

    @on_all_ranks
    def read(self, folder: Path) -> dict[str, Any]:
        """Take up a checkpoint; returns the facts that were saved with it."""
        facts = checkpoint_files.read(folder, self.policy, self.optimizer, self._reference_weights())
        self._publish()
        return facts

    @on_all_ranks
    def learn(
        self, groups: Sequence[Group], at: Progress, budget: int, gold: Sequence[Sequence[Sample]] = ()
    ) -> Report:
        """Take a round's gradient steps, from where a run of `budget` frames now is.

        Each step also imitates one batch of `gold`, in turn.
        """
        settings, update, share = self.settings, at.updates, at.frames / budget
        answers = training_samples(groups, settings)
        if not answers:
            self._clear_activations()
            return Report()
        self._seed_dropout(update)
        loss = loss_settings(settings, at.frames)
        steps = self._steps(minibatches(answers, settings.step_size), loss)
        self._prepare([piece for step in steps for piece in step.pieces], len(steps) * settings.training_epoch, update)
        sums: defaultdict[str, float] = defaultdict(float)
        norms: list[float] = []
        for epoch in range(settings.training_epoch):
            for index in self.seeds.rng("minibatches", update, epoch).permutation(len(steps)):
                self._gradients(steps[index], loss, update, sums)
                if gold:
                    coef = value_at(settings.sft_coef, at.frames)
                    sums["sft"] += self._supervised_gradients(gold[len(norms) % len(gold)], coef)["sft"]
                norms.append(self.optimizer.step(update + len(norms), share))
                self._clear_activations()
        self._publish()
        return Report(len(norms), self._means(self.ranks.total(sums), norms))

    def _seed_dropout(self, update: int) -> None:
        """What the adapters drop follows from the seed and the update, so that a resume is exact."""
        if self.drops_out:
            torch.manual_seed(self.seeds.integer("dropout", update))

    @torch.no_grad()
    def _publish(self) -> None:
        """Bring the weights to whoever writes completions with them."""
        self._clear_activations()
        if self.full_policy is self.policy:
            return
        own = dict(self.full_policy.model.named_parameters())
        for name, weight in self.optimizer.named.items():
            own[name].copy_(full_tensor(weight))

    def _clear_activations(self) -> None:
        """Let go of what was computed for a round that is over, or with weights that have changed."""
        if self.activation_cache is not None:
            self.activation_cache.clear()

    def _supervised_gradients(self, samples: Sequence[Sample], weight: float = 1.0) -> dict[str, float]:
        """Add the gradients of the mean negative log-probability of given completions.

        Returns this process's share of that mean (`sft`), and of the tokens that the policy finds likeliest (`right`).
        """
        total = sum(len(sample.places) for sample in samples)
        sums = {"sft": 0.0, "right": 0.0}
        for batch, counts in self._batches(samples):
            scores = self.scorer(batch, 1.0, top=1)
            assert scores.top is not None
            loss = -scores.logprobs.sum() * counts / total
            (weight * loss).backward()
            self.beat()
            sums["sft"] += float(loss.detach())
            sums["right"] += counts * int((scores.top[0][:, 0] == batch.targets).sum())
        return sums

    def _gradients(self, step: Minibatch, loss: LossSettings, update: int, sums: defaultdict[str, float]) -> None:
        """Add the gradients of all micro-batches of a minibatch."""
        found: list[dict[str, Tensor]] = []
        for piece in step.pieces:
            top = piece.top and piece.top[0]
            scores, watched = self._scored(piece, update, bool(loss.entropy_coef), top)
            tokens = Tokens(
                logprobs=scores.logprobs,
                old=scores.logprobs.detach() if piece.old is None else piece.old,
                generator=piece.generator,
                advantages=piece.advantages,
                owner=piece.batch.owner,
                reference=piece.reference,
                teacher=piece.teacher,
                entropies=scores.entropies,
                watched=watched,
                teacher_top=piece.top and piece.top[1],
                policy_top=scores.others,
            )
            share = policy_loss(tokens, loss, step.whole)
            (share.value * piece.weight).backward()
            self.beat()
            own = {**share.sums, "loss": share.value.detach()}
            found.append({key: value.float() * piece.weight for key, value in own.items()})
        for key in found[0]:
            sums[key] += float(torch.stack([each[key] for each in found]).sum())

    def _scored(
        self, piece: MicroBatch, update: int, entropy: bool = False, others: Tensor | None = None
    ) -> tuple[TokenScores, Tensor | None]:
        """What the policy says of a micro-batch's tokens, and which of them were computed anew (None: all)."""
        batch, temperature = piece.batch, self.settings.temperature
        found = None if self.activation_cache is None else self.activation_cache.find(batch, update)
        if self.activation_cache is None or found is None:
            return self.scorer(batch, temperature, entropy, others, mask=piece.mask), None
        with self.activation_cache.reused(found):
            scores = self.scorer(batch, temperature, entropy, others, mask=piece.mask)
        return scores, torch.isin(batch.owner, found.watched)

    @torch.no_grad()
    def _prepare(self, pieces: Sequence[MicroBatch], steps: int, update: int) -> None:
        """Log-probabilities before the first step: what ratios compare with, and those of fixed models.

        The only step of a round compares with itself, so the policy's are computed where more follow.
        """
        temperature, stale = self.settings.temperature, self.settings.compares_with == "generator"
        for piece in pieces:
            self.beat()
            if stale:
                piece.old = piece.generator
            elif steps > 1:
                piece.old = self._scored(piece, update)[0].logprobs
            if self.reference is not None:
                piece.reference = self.reference(piece.batch, temperature, piece.mask).logprobs
            if self.teacher is not None and (top := self.settings.teacher_top_k):
                pad_id = self.policy.pad_id
                piece.top = likeliest(self.teacher, piece.batch, piece.samples, top, temperature, pad_id)
            elif self.teacher is not None:
                piece.teacher = self.teacher(piece.batch, temperature, mask=piece.mask).logprobs

    def _steps(self, dealt: Sequence[Sequence[TrainingSample]], loss: LossSettings) -> list[Minibatch]:
        """The minibatches of a round, each of which divides by the same share of the whole round."""
        every = [sample for samples in dealt for sample in samples]
        tokens = sum(len(sample.tokens.places) for sample in every)
        whole = Normalizer(tokens / len(dealt), len(every) / len(dealt))
        return [Minibatch(self._pieces(self._computed(samples, loss)), whole) for samples in dealt]

    def _computed(self, samples: Sequence[TrainingSample], loss: LossSettings) -> Sequence[TrainingSample]:
        """The samples that have a gradient, or one of them if none has: a step is taken all the same."""
        if self.computes_all or loss.has_beside:
            return samples
        return [sample for sample in samples if sample.advantage] or samples[:1]

    def _pieces(self, samples: Sequence[TrainingSample]) -> list[MicroBatch]:
        """Micro-batches, with each token's advantage and the generator's log-probability."""
        advantages = torch.tensor([sample.advantage for sample in samples], device=self.device)
        pieces = []
        for batch, weight in self._batches([sample.tokens for sample in samples]):
            drawn = [value for index in batch.samples for value in samples[index].logprobs]
            generator = torch.from_numpy(np.array(drawn, dtype=np.float32)).to(self.device)
            own = [samples[index] for index in batch.samples]
            pieces.append(MicroBatch(batch, weight, advantages[batch.owner], generator, own, self._mask(own)))
        return pieces

    def _mask(self, samples: Sequence[TrainingSample]) -> Tensor | None:
        """The packed sampling masks of a micro-batch's tokens, in its order."""
        masks = [mask.packed() for sample in samples for mask in sample.masks]
        return torch.from_numpy(np.concatenate(masks)).to(self.device) if masks else None

    def _batches(self, samples: Sequence[Sample]) -> list[tuple[Batch, float]]:
        """This process's micro-batches, each with the weight it counts with."""
        most = self.ranks.pass_tokens(samples, self.settings.pass_tokens)
        both = self.teacher is None or self.teacher.share_from is not None
        share_from = self.scorer.share_from if both else None
        packing = self.settings.packing and both
        made = micro_batches(samples, most, pad_id=self.policy.pad_id, share_from=share_from, packing=packing)
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
            "optim/lr": self.optimizer.rate,
        }
