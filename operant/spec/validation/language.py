"""Cross-field validation of algorithms that learn from verified answers."""

from __future__ import annotations

from collections.abc import Iterable

from operant.spec.settings.language import VLLM_TOP_K
from operant.spec.settings.language_algorithms import (
    OF_THE_BATCH,
    OVER_TOP_K,
    WEIGHING,
    VerifiedAlgorithm,
    external_environments,
)
from operant.spec.settings.rewards import RESERVED
from operant.spec.settings.sections import SpecFields
from operant.spec.settings.supervised import LanguageAlgorithm
from operant.spec.validation.conflict import Conflict, closest, in_words, near_divisors, near_multiples


def batches(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Whole groups fill a round, and equal minibatches fill it too."""
    batch, group, step = algorithm.batch_size, algorithm.group_size, algorithm.step_size
    if batch % group:
        sizes = near_multiples(group, batch, most=10**6)
        yield Conflict(
            "agent.algorithm.batch_size",
            f"does not hold whole groups of group_size = {group} completions",
            in_words(sizes, "group_size", near_divisors(batch, group, 2)),
            closest(sizes, batch),
            ("agent.algorithm.group_size",),
        )
    elif batch % step:
        sizes = near_divisors(batch, step)
        yield Conflict(
            "agent.algorithm.minibatch_size",
            f"does not divide batch_size = {batch}",
            in_words(sizes, "batch_size", near_multiples(step, batch, most=10**6)),
            closest(sizes, step),
            ("agent.algorithm.batch_size",),
        )


def budget(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """The budget holds one round."""
    batch = algorithm.batch_size
    if batch > spec.env.max_frame:
        reason = f"ends before the first round of batch_size = {batch}"
        yield Conflict("env.max_frame", reason, f"{batch} or more", batch, ("agent.algorithm.batch_size",))


def parts(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """A mixture has parts, and nothing else has."""
    text = spec.env.text
    mixed = spec.env.name == "mixture"
    if mixed and (text is None or not text.mixture):
        yield Conflict("env.name", "needs the tasks to mix", "env.text.mixture: [{name: ...}, {name: ...}]")
    elif text is not None and text.mixture and not mixed:
        yield Conflict(
            "env.text.mixture", "has no effect: env.name names one task", "env.name: mixture", None, ("env.name",)
        )
    for path in ("arguments", "order"):
        if text is not None and mixed and getattr(text, path):
            yield Conflict(f"env.text.{path}", "has no effect: each task of the mixture has its own", "leave it out")


def history(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """A rollout that is one sample holds every turn."""
    text = spec.env.text
    if text is not None and text.dialogue.history is not None and text.dialogue.strategy == "interleaved":
        yield Conflict(
            "env.text.dialogue.history",
            "does not fit strategy interleaved: one sample holds all turns of a rollout",
            "env.text.dialogue.strategy: branching; or leave it out",
            None,
            ("env.text.dialogue.strategy",),
        )


def rewards(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """Reward functions have names of their own in the record; without any the verifier's weight changes nothing."""
    text = spec.env.text
    if text is None:
        return
    names = [each.part for each in text.reward_functions]
    for index, name in enumerate(names):
        if name in names[:index] or name in RESERVED:
            reason = f"has the name {name}, which " + ("the record has already" if name in RESERVED else "another has")
            path = f"env.text.reward_functions.{index}"
            yield Conflict(
                "env.text.reward_functions", reason, f"a label: {{name: ..., label: {name}_2}}", None, (path,)
            )
    if not names and text.verifier_weight != 1:
        yield Conflict("env.text.verifier_weight", "has no effect: there are no reward functions", "leave it out", 1.0)


def divergence(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """An estimator has a gradient, and it and its weight come together."""
    if algorithm.kl == "k1" and algorithm.kl_coef > 0:
        yield Conflict(
            "agent.algorithm.kl",
            "has no effect: the gradient of k1 in a loss is zero on average, so that it only adds noise",
            "k2, whose gradient is that of KL(policy || first policy); or k3, of KL(first policy || policy)",
            "k2",
            allowed_once=True,
        )
    elif algorithm.kl != "none" and algorithm.kl_coef == 0:
        yield Conflict(
            "agent.algorithm.kl", "has no effect: kl_coef is 0", "kl_coef 0.001", "none", ("agent.algorithm.kl_coef",)
        )
    elif algorithm.kl == "none" and algorithm.kl_coef > 0:
        yield Conflict("agent.algorithm.kl_coef", "has no effect: kl is none", "kl k3", 0.0, ("agent.algorithm.kl",))


def baseline(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Where the baseline is the batch's, a group of equal rewards is above or below it."""
    if algorithm.credit in OF_THE_BATCH and algorithm.zero_variance != "keep":
        yield Conflict(
            "agent.algorithm.zero_variance",
            f"does not fit credit {algorithm.credit}, whose baseline is the batch's: groups of equal rewards teach too",
            "keep; or agent.algorithm.credit grpo",
            "keep",
            ("agent.algorithm.credit",),
            allowed_once=True,
        )


def ratios(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Completions of other weights than the trainer's are weighed by how likely the trainer finds them: once."""
    path, importance = "agent.algorithm.old_logprobs", algorithm.importance
    if algorithm.old_logprobs == "generator" and importance in WEIGHING:
        reason = f"does not fit importance {importance}: ratios to the generator are its weights already"
        yield Conflict(path, reason, "auto; or importance none", "auto", ("agent.algorithm.importance",))
    elif algorithm.old_logprobs == "trainer" and importance in ("icepop", "dppo", "ipo"):
        reason = f"does not fit importance {importance}, which masks tokens and leaves the others with weight 1"
        yield Conflict(path, reason, "auto", "auto", ("agent.algorithm.importance",), allowed_once=True)
    elif algorithm.old_logprobs == "trainer" and algorithm.staleness and importance == "none":
        reason = (
            f"does not fit staleness {algorithm.staleness} with importance none: what other weights generated would "
            "count in full, however unlikely it has become"
        )
        others = ("agent.algorithm.staleness", "agent.algorithm.importance")
        yield Conflict(path, reason, "auto; or importance truncate", "auto", others, allowed_once=True)


def ahead(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Completions generated ahead of the trainer can be used only if a whole round may pass; copies have weights."""
    steps, generator = algorithm.updates_per_round, spec.agent.model.generator if spec.agent.model else "torch"
    if 0 < algorithm.staleness < steps:
        yield Conflict(
            "agent.algorithm.staleness",
            f"is less than the {steps} updates of one round, so that nothing generated meanwhile could be learnt from",
            f"0, or {steps} or more",
            steps,
            ("agent.algorithm.minibatch_size", "agent.algorithm.training_epoch"),
        )
    asked = {"agent.algorithm.staleness": algorithm.staleness > 0, "meta.cluster": spec.meta.cluster == "ray"}
    for path in (path for path, is_asked in asked.items() if is_asked and generator != "torch"):
        reason = f"does not fit: the generator {generator} takes no copies of the weights"
        yield Conflict(path, reason, "agent.model.generator torch", None, ("agent.model.generator",))
    if spec.meta.processes > 1 and any(asked.values()):
        path = next(path for path, is_asked in asked.items() if is_asked)
        reason = f"does not fit {path}: processes that share a model generate and train in turns"
        yield Conflict("meta.processes", reason, "1", 1, (path,))


def received(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """Environments that ask when they please cannot be answered by processes that must work in step."""
    hosted = external_environments(spec.env.model_dump(include={"name": True, "text": {"mixture"}}))
    if hosted and spec.meta.processes > 1:
        reason = f"does not fit {hosted[0]}: processes that share a model answer in step, and it asks when it pleases"
        yield Conflict("meta.processes", reason, "1", 1, ("env.name",))


def tiny(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """Attention heads have equal, even shares of the width."""
    model = spec.agent.model
    if model is None:
        return
    tiny = model.tiny
    if tiny.width % (2 * tiny.heads):
        widths = near_multiples(2 * tiny.heads, tiny.width, most=16_384)
        yield Conflict(
            "agent.model.tiny.width",
            f"is no multiple of twice heads = {tiny.heads}",
            in_words(widths, "heads", near_divisors(tiny.width // 2, tiny.heads)),
            closest(widths, tiny.width),
            ("agent.model.tiny.heads",),
        )


def server(spec: SpecFields, algorithm: LanguageAlgorithm) -> Iterable[Conflict]:
    """A server has an address, and vLLM can say what it drew from."""
    model = spec.agent.model
    if model is not None and model.generator == "openai" and model.url is None:
        yield Conflict(
            "agent.model.generator", "needs the address of the server", "agent.model.url: http://HOST:PORT/v1"
        )
    if model is not None and model.generator == "vllm" and algorithm.truncates:
        reason = f"is {algorithm.top_k}: vLLM tells which tokens top_p, top_k and min_p left to draw from only where "
        reason += f"top_k is from 1 to {VLLM_TOP_K}, and without them the loss cannot replay the truncation"
        if not 0 < algorithm.top_k <= VLLM_TOP_K:
            others = ("agent.algorithm.top_p", "agent.algorithm.min_p", "agent.model.generator")
            yield Conflict("agent.algorithm.top_k", reason, "50; or top_p 1, top_k 0 and min_p 0", 50, others)


def comparison(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Rewards are compared within a group, unless there is nothing to learn from them; something is learnt."""
    if algorithm.group_size == 1 and algorithm.policy_coef and algorithm.credit not in OF_THE_BATCH:
        reason = "leaves nothing to compare a completion with"
        yield Conflict("agent.algorithm.group_size", reason, "2 or more; or policy_coef 0", 2)
    if not algorithm.policy_coef and algorithm.teacher is None:
        reason = "leaves nothing to learn from: there is no teacher"
        yield Conflict("agent.algorithm.policy_coef", reason, "1; or agent.algorithm.teacher: MODEL", 1.0)
    if not algorithm.policy_coef and algorithm.zero_variance != "keep":
        reason = "has no use: with policy_coef 0 rewards are not learnt from"
        yield Conflict("agent.algorithm.zero_variance", reason, "keep", "keep", ("agent.algorithm.policy_coef",))


def teaching(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """A divergence over the teacher's likeliest tokens says how many; a teacher asked otherwise is compared so."""
    if algorithm.teacher is None:
        return
    over = algorithm.teacher_kl in OVER_TOP_K
    path, others = "agent.algorithm.teacher_top_k", ("agent.algorithm.teacher_kl",)
    if over and not algorithm.teacher_top_k:
        yield Conflict(path, f"is 0, but {algorithm.teacher_kl} compares likeliest tokens", "20", 20, others)
    elif algorithm.teacher_top_k and not over:
        yield Conflict(path, f"has no effect: teacher_kl is {algorithm.teacher_kl}", "teacher_kl jsd", 0, others)
    if algorithm.teacher_prompt != "same" and not over:
        reason = f"does not fit teacher_kl {algorithm.teacher_kl}, which reads the policy's own prompts"
        yield Conflict("agent.algorithm.teacher_prompt", reason, "same; or teacher_kl jsd", "same", others)
    if algorithm.teacher == "self" and algorithm.teacher_prompt == "same":
        reason = "is the policy itself, asked the same: there is nothing to come closer to"
        yield Conflict("agent.algorithm.teacher", reason, "teacher_prompt answer; or another model")


def moving(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """A reference that moves is compared with."""
    if algorithm.reference_updates is not None and algorithm.kl == "none":
        path, others = "agent.algorithm.reference_updates", ("agent.algorithm.kl",)
        yield Conflict(path, "has no effect: kl is none", "leave it out; or kl k3", None, others)


def examples(spec: SpecFields, algorithm: VerifiedAlgorithm) -> Iterable[Conflict]:
    """Given answers have a weight."""
    if algorithm.sft_data is not None and algorithm.sft_coef == 0:
        path, others = "agent.algorithm.sft_data", ("agent.algorithm.sft_coef",)
        yield Conflict(path, "has no effect: sft_coef is 0", "sft_coef 1", None, others)


SHARED = (budget, parts, history, rewards, tiny, server, received)
CHECKS = (batches, comparison, divergence, moving, baseline, ratios, ahead, teaching, examples)
