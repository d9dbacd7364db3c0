"""Losses as pure functions of tensors; each has a float64 numpy twin in tests/oracle."""

from __future__ import annotations

import torch
from torch import Tensor


def clipped_surrogate(logp: Tensor, old_logp: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """PPO's policy loss: -E[min(r A, clip(r, 1 - eps, 1 + eps) A)] (Schulman et al., 2017, eq. 7)."""
    ratio = (logp - old_logp).exp()
    return -torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


def policy_gradient_loss(logp: Tensor, advantage: Tensor) -> Tensor:
    """-E[log p(a) A], whose gradient is the policy gradient (Sutton et al., 2000)."""
    return -(logp * advantage).mean()


def value_loss(value: Tensor, target: Tensor, kind: str = "mse") -> Tensor:
    """Mean squared error, the PPO paper's L^VF; or the mean of Huber errors."""
    error = value - target
    return (huber(error) if kind == "huber" else error.square()).mean()


def huber(error: Tensor) -> Tensor:
    """e^2 / 2 of each error within 1, |e| - 1/2 beyond (Huber, 1964): torch's SmoothL1Loss before its mean."""
    size = error.abs()
    return torch.where(size < 1, 0.5 * error.square(), size - 0.5)


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float) -> Tensor:
    """The pessimistic value loss that keeps the new value within `clip` of the old one: `value_loss` where it is."""
    near = old_value + (value - old_value).clamp(-clip, clip)
    return torch.max((value - target).square(), (near - target).square()).mean()


def approximate_kl(logp: Tensor, old_logp: Tensor) -> Tensor:
    """The estimator E[(r - 1) - log r] of KL(old || new): unbiased, never negative, low variance."""
    log_ratio = logp - old_logp
    return (log_ratio.exp() - 1 - log_ratio).mean()


def clip_fraction(logp: Tensor, old_logp: Tensor, clip: float) -> Tensor:
    """Share of samples whose probability ratio lies outside the clip range."""
    return (((logp - old_logp).exp() - 1).abs() > clip).float().mean()


def standardize(advantage: Tensor) -> Tensor:
    """Zero mean and unit deviation; a single sample is only centred, since it has no deviation."""
    centred = advantage - advantage.mean()
    return centred / (centred.square().mean().sqrt() + 1e-8) if advantage.numel() > 1 else centred


def q_target(reward: Tensor, terminated: Tensor, next_q: Tensor, gamma: float | Tensor) -> Tensor:
    """Target r + gamma (1 - terminated) Q'(s'), with one gamma or one for each row; truncation does bootstrap."""
    return reward + gamma * torch.where(terminated, torch.zeros_like(next_q), next_q)


def epsilon_greedy_value(q: Tensor, epsilon: float, mask: Tensor | None = None) -> Tensor:
    """What an epsilon-greedy policy expects: (1 - epsilon) max_a Q + epsilon mean_a Q, of action values [..., A].

    Both go over the actions that `mask` allows; None allows all.
    """
    if mask is None:
        return (1 - epsilon) * q.max(-1).values + epsilon * q.mean(-1)
    best = torch.where(mask, q, -torch.inf).max(-1).values
    mean = torch.where(mask, q, 0.0).sum(-1) / mask.sum(-1)
    return (1 - epsilon) * best + epsilon * mean


def boltzmann_value(q: Tensor, temperature: float, mask: Tensor | None = None) -> Tensor:
    """What a Boltzmann policy expects: sum_a softmax(Q / temperature)_a Q_a, of action values [..., A].

    It goes over the actions that `mask` allows; None allows all.
    """
    legal = q if mask is None else torch.where(mask, q, -torch.inf)
    if temperature == 0:
        return legal.max(-1).values
    return (torch.softmax(legal / temperature, -1) * q).sum(-1)


def weighted_td_loss(error: Tensor, weight: Tensor | None, kind: str) -> Tensor:
    """Mean of Huber (delta 1) or squared errors, each scaled by its importance weight."""
    each = huber(error) if kind == "huber" else error.square()
    return (each if weight is None else each * weight).mean()


def quantile_huber_loss(quantile: Tensor, target: Tensor) -> Tensor:
    """sum_i mean_j |tau_i - 1{u < 0}| Huber(u), u = target_j - quantile_i, of each row (Dabney et al., 2018, eq. 10).

    `quantile` [B, N] are at the middles tau_i of N equal parts; `target` [B, M] are samples of the return.
    """
    count = quantile.shape[-1]
    middle = (torch.arange(count, device=quantile.device) + 0.5) / count
    error = target.unsqueeze(-2) - quantile.unsqueeze(-1)
    return ((middle.unsqueeze(-1) - (error.detach() < 0).float()).abs() * huber(error)).mean(-1).sum(-1)


def reduce_critics(values: Tensor, reduction: str) -> Tensor:
    """The values [2, ...] of two critics as one: the smaller (Fujimoto et al., 2018), or their mean."""
    return values.amin(0) if reduction == "min" else values.mean(0)


def sac_policy_loss(q: Tensor, logp: Tensor, alpha: Tensor) -> Tensor:
    """SAC's policy loss E[alpha log pi - Q], with Q of both critics (Haarnoja et al., 2018, eq. 7)."""
    return (alpha * logp - q).mean()


def alpha_loss(log_alpha: Tensor, logp: Tensor, target_entropy: float) -> Tensor:
    """-log(alpha) (E[log pi] + target entropy): its descent raises alpha while the entropy is too low."""
    return -(log_alpha * (logp.detach().mean() + target_entropy)).sum()


def smoothed_action(action: Tensor, noise: Tensor, deviation: float, clip: float) -> Tensor:
    """TD3's target action clip(a + clip(deviation noise, -c, c), -1, 1) (Fujimoto et al., 2018, eq. 14)."""
    return (action + (deviation * noise).clamp(-clip, clip)).clamp(-1, 1)


def imitation_policy_loss(logp: Tensor, gain: Tensor, weight: Tensor | None) -> Tensor:
    """E[-log pi(a) (R - V)_+] of past actions whose `gain` is (R - V)_+ (Oh et al., 2018, eq. 2)."""
    each = -logp * gain
    return (each if weight is None else each * weight).mean()


def imitation_value_loss(value: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """E[((R - V)_+)^2 / 2]: values rise to past returns, and never fall to them (Oh et al., 2018, eq. 3)."""
    each = 0.5 * (target - value).clamp(min=0).square()
    return (each if weight is None else each * weight).mean()
