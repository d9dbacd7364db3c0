"""Losses of completions against loops in float64, and micro-batches against the whole batch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from operant.engines.language.learning.losses import LossSettings, Normalizer, Tokens, divergence, policy_loss
from tests.oracle.language_presets import PRESETS, preset

LENGTHS = (3, 1, 4, 2)
RNG = np.random.default_rng(5)
TOTAL = sum(LENGTHS)
OLD = -RNG.uniform(0.1, 3.0, TOTAL)
NEW = OLD + RNG.normal(0, 0.4, TOTAL)
MU = OLD + RNG.normal(0, 0.8, TOTAL)
REF = OLD + RNG.normal(0, 0.3, TOTAL)
TEACHER = OLD + RNG.normal(0, 0.5, TOTAL)
ENTROPY = RNG.uniform(0.1, 2.0, TOTAL)
OWNER = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
ADVANTAGE = np.array([1.3, -0.7, -1.1, 0.4])

CASES: dict[str, LossSettings] = {
    **PRESETS,
    "dr_grpo": preset("dr_grpo", length=6),
    "gspo wide": preset("gspo", clip_low=0.05, clip_high=0.05),
    "cispo tight": preset("cispo", clip_high=0.1),
    "icepop tight": preset("icepop", mask_low=0.7, mask_high=1.5),
    "dppo tight": preset("dppo", mask_difference=0.05),
    "ipo tight": preset("dppo", mask="ipo", mask_difference=0.05),
    "icepop with KL": preset("icepop", mask_low=0.7, mask_high=1.5, drift="kl", drift_coef=0.3),
    "dual clip": preset("grpo", cap=1.25),
    "k1": preset("grpo", kl="k1", kl_coef=0.1),
    "k2": preset("dapo", kl="k2", kl_coef=0.1),
    "k3": preset("gspo", kl="k3", kl_coef=0.1),
    "teacher k2": preset("reinforce", teacher_kl="k2", teacher_coef=0.7),
    "teacher k3": preset("grpo", teacher_kl="k3", teacher_coef=0.7, kl="k1", kl_coef=0.1),
    "entropy": preset("dapo", entropy_coef=0.01),
    "tis": preset("dapo", correction="token", correction_cap=1.1),
    "sequence tis": preset("grpo", correction="sequence", correction_cap=1.4),
}


def oracle(new: np.ndarray, s: LossSettings) -> float:
    """The loss of the whole batch, a sequence and a token at a time."""
    total = 0.0
    for k, length in enumerate(LENGTHS):
        at = np.flatnonzero(k == OWNER)
        a = ADVANTAGE[k]
        mean_log = math.fsum(new[at] - OLD[at]) / length
        product = math.exp(math.fsum(OLD[at] - MU[at]))
        terms = []
        for i in at:
            r = math.exp(mean_log if s.level == "sequence" else new[i] - OLD[i])
            if s.surrogate == "clip":
                free = r if s.cap is None else min(r, s.cap)
                term = -min(free * a, min(max(r, 1 - s.clip_low), 1 + s.clip_high) * a)
            elif s.surrogate == "cispo":
                frozen = math.exp(NEW[i] - OLD[i])  # the ratio carries no gradient
                term = -min(frozen, 1 + s.clip_high) * a * new[i]
            else:
                term = -r * a
            drift = math.exp(NEW[i] - MU[i])
            apart = math.exp(NEW[i]) - math.exp(MU[i])
            if s.mask == "icepop" and not s.mask_low <= drift <= s.mask_high:
                term = 0.0
            if s.mask == "dppo" and (apart > s.mask_difference if a > 0 else apart < -s.mask_difference):
                term = 0.0
            if s.mask == "ipo" and abs(apart) > s.mask_difference:
                term = 0.0
            masked = s.mask == "icepop" and not s.mask_low <= drift <= s.mask_high
            if s.correction != "none":
                weight = product if s.correction == "sequence" else math.exp(OLD[i] - MU[i])
                term *= min(weight, s.correction_cap)
            d = REF[i] - new[i]
            term += s.kl_coef * {"k1": -d, "k2": d * d / 2, "k3": math.exp(d) - d - 1}[s.kl]
            t = TEACHER[i] - new[i]
            term += s.teacher_coef * {"k2": t * t / 2, "k3": math.exp(t) - t - 1}[s.teacher_kl]
            log_drift = new[i] - MU[i]
            if s.drift == "kl":
                weighted = math.exp(log_drift) * log_drift - math.exp(log_drift) + 1
                term += 0.0 if masked else s.drift_coef * weighted
            else:
                term += s.drift_coef * log_drift**2
            term -= s.entropy_coef * ENTROPY[i]
            terms.append(term)
        if s.mean == "sequence":
            total += math.fsum(terms) / length / len(LENGTHS)
        elif s.mean == "token":
            total += math.fsum(terms) / TOTAL
        else:
            total += math.fsum(terms) / (s.length or 0) / len(LENGTHS)
    return total


def tokens(new: torch.Tensor, chosen: np.ndarray) -> Tokens:
    def take(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values[chosen])

    return Tokens(
        logprobs=new[torch.from_numpy(chosen)],
        old=take(OLD),
        generator=take(MU),
        advantages=take(ADVANTAGE[OWNER]),
        owner=take(OWNER),
        reference=take(REF),
        teacher=take(TEACHER),
        entropies=take(ENTROPY),
    )


WHOLE = Normalizer(tokens=TOTAL, sequences=len(LENGTHS))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    new = torch.tensor(NEW, requires_grad=True)
    loss = policy_loss(tokens(new, np.arange(TOTAL)), CASES[name], WHOLE)
    assert loss.value.item() == pytest.approx(oracle(NEW, CASES[name]), rel=1e-12)
    (slope,) = torch.autograd.grad(loss.value, new)
    step = 1e-6
    for i in range(TOTAL):
        ahead, behind = NEW.copy(), NEW.copy()
        ahead[i] += step
        behind[i] -= step
        numeric = (oracle(ahead, CASES[name]) - oracle(behind, CASES[name])) / (2 * step)
        assert slope[i].item() == pytest.approx(numeric, abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_micro_batches_add_up_to_the_batch(name: str) -> None:
    new = torch.tensor(NEW, requires_grad=True)
    whole = policy_loss(tokens(new, np.arange(TOTAL)), CASES[name], WHOLE)
    parts = [
        policy_loss(tokens(new, np.flatnonzero(np.isin(OWNER, k))), CASES[name], WHOLE) for k in ((2, 0), (3,), (1,))
    ]
    torch.testing.assert_close(sum(part.value for part in parts), whole.value, rtol=1e-12, atol=1e-12)
    for key, value in whole.sums.items():
        torch.testing.assert_close(sum(part.sums[key] for part in parts), value)


@pytest.mark.parametrize("name", PRESETS)
def test_at_the_first_update_every_ratio_is_one(name: str) -> None:
    new = torch.tensor(OLD, requires_grad=True)
    same = replace(tokens(new, np.arange(TOTAL)), generator=torch.from_numpy(OLD))
    sums = policy_loss(same, replace(PRESETS[name], length=6), WHOLE).sums
    assert sums["ratio"].item() == TOTAL
    assert sums["kl"].item() == sums["mismatch_kl"].item() == sums["clipped"].item() == sums["masked"].item() == 0.0


def test_the_mean_gradient_of_the_teachers_term_is_that_of_the_divergence() -> None:
    """With k2, over every token that may be drawn: the gradient of sum p (log p - log q) by the logits of p."""
    logits, teacher = torch.tensor(RNG.normal(0, 1, 6), requires_grad=True), torch.tensor(RNG.normal(0, 1, 6))
    logs, fixed = torch.log_softmax(logits, 0), torch.log_softmax(teacher, 0)
    (expected,) = torch.autograd.grad((logs.exp() * (logs - fixed)).sum(), logits, retain_graph=True)
    terms = divergence(logs, fixed, "k2")
    (found,) = torch.autograd.grad((logs.exp().detach() * terms).sum(), logits)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
