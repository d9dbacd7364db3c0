"""The training files of rlvr-experiments, translated to native specs.

Such a file counts in prompts where a spec counts in completions, gives every engine a section of its own under
`roles`, and has no evaluation. What it says of engines, ports and buffers decides how fast a run is and not what it
learns, so it is left out, each key with the reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from operant.spec.dialects.conversion import Section, converter, has_shape
from operant.spec.dialects.rlvr_data import data, data_iter
from operant.spec.dialects.rlvr_roles import roles

LAB = "rlvr-experiments"
SEED = 42
NEVER = 9_999_999
COUNT = re.compile("[0-9]{1,18}")
"""So many prompts between two updates of the reference mean that it stays as it is."""
UNSAVED = (0, 9999)
LOSSES = {"grpo": "grpo", "drgrpo": "dr_grpo", "dapo": "dapo"}
ONE_PROCESS = "left out: generation and training share one process"
OWN_SHAPES = "left out: passes are packed by tokens (agent.algorithm.pass_tokens), without fixed shapes"
REPLACED = "groups whose rewards are all equal are replaced, as its filter does; those completions are frames too"
DISTILLING = "has no counterpart: distillation here is on sampled tokens (agent.algorithm.teacher)"
LEGACY = "has no counterpart: it is of the trainers for distillation, not of the one for verified rewards"


@dataclass(frozen=True)
class Sizes:
    """What the counts of prompts come to, in completions: of a group, of a gradient step, of a round."""

    group: int
    step: int
    round: int


def recognises(content: Any) -> bool:
    """Whether plain data has the shape of such a file: `roles` is the one key that every one of them has."""
    return has_shape(content, "roles", list, foreign="env")


def _sections(top: Section) -> None:
    conversion = top.conversion
    top.copy("name", "name")
    _run(top.below("run"))
    sizes = _sizes(top.below("training"), top.below("sampling"))
    _loss(top.below("loss"))
    data(top.below("data"))
    data_iter(top.below("data_iter"))
    _sampling(top.below("sampling"))
    _imitation(top)
    _training(top.below("training"), sizes)
    _verifier(top.below("verifier"))
    roles(top)
    conversion.set("meta.device", "auto", ("roles",))
    conversion.set("meta.max_session", 1, ("run",))
    buffer = top.below("buffer")
    buffer.lacks({"max_reads": "has no counterpart: a completion is learnt from in its own round"}, (1,))
    buffer.drop({"maxsize": "left out: a round is learnt from as soon as it is verified"})
    buffer.close()
    top.drop(
        {
            "tokenizer": "left out: the model brings its own tokenizer",
            "trace_path": "left out: what a run records lies in its directory",
            "sync": "left out: the generator reads the trainer's weights, so there is nothing to send",
        }
    )
    top.close()


convert = converter(LAB, _sections)


def _run(run: Section) -> None:
    run.get("name")
    run.copy("seed", "meta.seed", SEED)
    run.drop({"port_start": "left out: one process needs no ports"})
    run.close()


def _sizes(training: Section, sampling: Section) -> Sizes:
    """Prompts of a step and completions of a prompt, as one count of completions."""
    conversion, group = training.conversion, sampling.whole("n", 1)
    if group < 2:
        conversion.refuse(sampling.at("n"), "leaves nothing to compare a completion with", "2 or more")
        group = 2
    prompts = max(1, training.whole("prompts_per_optim_step", 1))
    training.need("prompts_per_optim_step")
    synced = max(prompts, training.whole("prompts_per_rollout_sync", prompts))
    sizes = Sizes(group, prompts * group, synced // prompts * prompts * group)
    origin = training.at("prompts_per_optim_step")
    conversion.set("agent.algorithm.group_size", group, sampling.at("n"))
    conversion.set("agent.algorithm.batch_size", sizes.round, origin)
    conversion.remark(origin, f"{prompts} prompts x {group} completions = {sizes.step} completions in a gradient step")
    if sizes.round > sizes.step:
        conversion.set("agent.algorithm.minibatch_size", sizes.step, origin)
        times = sizes.round // sizes.step
        conversion.remark(
            training.at("prompts_per_rollout_sync"),
            f"{times} steps between two updates of the generator: a round of {sizes.round} completions "
            f"is learnt in {times} minibatches",
        )
    return sizes


def _loss(loss: Section) -> None:
    """Advantages and loss by name; the ratio's denominator and the averages are those of the whole batch."""
    conversion = loss.conversion
    name = loss.only("name", LOSSES, f"is none of {', '.join(LOSSES)}", "drgrpo") or "dr_grpo"
    conversion.set("agent.algorithm.name", name, loss.at("name"))
    conversion.set("agent.algorithm.old_logprobs", "generator", loss.at("name"))
    conversion.set("agent.algorithm.zero_variance", "resample", loss.at("name"))
    conversion.remark(loss.at("name"), REPLACED)
    if name == "dapo":
        loss.copy("eps_low", "agent.algorithm.clip_low")
        loss.copy("eps_high", "agent.algorithm.clip_high")
        conversion.remark(loss.at("name"), "token means are over the whole step, not over each micro-batch")
    elif loss.get("eps") == 0:
        conversion.set("agent.algorithm.loss", "reinforce", loss.at("eps"))
        conversion.remark(loss.at("eps"), "no clipping: the loss is reinforce")
    elif loss.get("eps") is not None:
        for side in ("clip_low", "clip_high"):
            conversion.set(f"agent.algorithm.{side}", loss.get("eps"), loss.at("eps"))
    if name == "dr_grpo":
        loss.copy("C", "agent.algorithm.constant_length")
    if loss.get("beta", 0):
        conversion.set("agent.algorithm.kl", "k3", loss.at("beta"))
        loss.copy("beta", "agent.algorithm.kl_coef")
    loss.drop({"C": f"left out: {name} has no constant length", "eps": f"left out: {name} reads eps_low and eps_high"})
    loss.drop(dict.fromkeys(("eps_low", "eps_high"), f"left out: {name} reads eps"))
    loss.close()


def _training(training: Section, sizes: Sizes) -> None:
    """The budget in frames, how often to save, and how much goes through the model at once."""
    conversion, steps = training.conversion, max(1, training.whole("max_steps", 1))
    training.need("max_steps")
    conversion.set("env.max_frame", steps * sizes.step, training.at("max_steps"))
    conversion.remark(
        training.at("max_steps"), f"{steps} steps x {sizes.step} completions = {steps * sizes.step:,} frames"
    )
    _saving(training, sizes, steps)
    _staleness(training, sizes)
    _pass_tokens(training)
    reference = training.get("prompts_per_reference_sync")
    if reference is not None and training.whole("prompts_per_reference_sync", NEVER) < steps * sizes.step:
        conversion.lose(
            training.at("prompts_per_reference_sync"), "has no counterpart: the reference is the first policy"
        )
    elif reference is not None:
        conversion.remark(
            training.at("prompts_per_reference_sync"), "never in this budget: the reference stays the first policy"
        )
    training.lacks({"resume_step": "has no counterpart: operant resume RUN goes on at a run's checkpoint"}, (0,))
    training.lacks({"alpha_grpo": "has no counterpart: the loss of the policy has weight 1"}, (1,))
    training.lacks({"adaptive_sampling": "has no counterpart: every prompt has group_size completions"})
    training.lacks(dict.fromkeys(("alpha_gkd", "jsd_alpha", "teacher_top_k", "teacher_use_chat_template"), DISTILLING))
    training.lacks(dict.fromkeys(LEGACY_KEYS, LEGACY))
    training.drop(HOW_FAST)
    training.close()


LEGACY_KEYS = (
    "batch_size", "minibatch_size", "sync_every_n_steps", "opsd_loss_type", "discard_perfect_completions",
    "sft_batch_size", "sft_accumulation_steps",
)  # fmt: skip
HOW_FAST = {
    "num_epochs": "left out: its trainer for verified rewards ignores it too; max_steps ends the run",
    "abort_in_flight": "left out: a completion is generated to its end by the weights that began it",
    "prompts_per_forward_backward": OWN_SHAPES,
    "completion_len_buckets": OWN_SHAPES,
    "completions_per_micro_batch_reference": OWN_SHAPES,
    "max_concurrent_tasks": ONE_PROCESS,
    "rollout_timeout_s": "left out: completions end by their length",
}


def _staleness(training: Section, sizes: Sizes) -> None:
    """How many updates old the weights that generated a completion may be; no less than a round."""
    origin, allowed, steps = training.at("max_staleness"), training.whole("max_staleness", 0), sizes.round // sizes.step
    if 0 < allowed < steps:
        said = f"an upper limit, which holds: a round is {steps} updates, so writing and training take turns"
        training.conversion.remark(origin, said)
    elif training.get("max_staleness") is not None:
        training.conversion.set("agent.algorithm.staleness", allowed, origin)


def _saving(training: Section, sizes: Sizes, steps: int) -> None:
    conversion, interval = training.conversion, training.whole("checkpoint_interval", 0)
    every = steps if interval in UNSAVED else interval
    origin = training.at("checkpoint_interval")
    for key in ("save_frequency", "eval_frequency"):
        conversion.set(f"meta.{key}", every * sizes.step, origin)
    conversion.set("meta.log_frequency", sizes.round, origin)
    said = f"a checkpoint and an evaluation every {every} steps = {every * sizes.step:,} frames"
    conversion.remark(origin, f"{said}, a metric row after every round")


def _pass_tokens(training: Section) -> None:
    """Completions of a micro-batch times their padded length is what one pass holds at most."""
    conversion, buckets, size = (
        training.conversion,
        training.get("seq_len_buckets"),
        training.get("completions_per_micro_batch"),
    )
    longest = max((each for each in buckets if isinstance(each, int)), default=0) if isinstance(buckets, list) else 0
    if longest:
        conversion.remark(
            training.at("seq_len_buckets"), f"{OWN_SHAPES}; completions longer than {longest} are not dropped"
        )
    products = size.items() if isinstance(size, dict) else [(longest, size)]
    counts = [(str(a), str(b)) for a, b in products]
    tokens = max((int(a) * int(b) for a, b in counts if COUNT.fullmatch(a) and COUNT.fullmatch(b)), default=0)
    if tokens:
        origin = training.at("completions_per_micro_batch")
        conversion.set("agent.algorithm.pass_tokens", tokens, origin)
        conversion.remark(
            origin, f"{tokens:,} tokens in one pass: the largest product of completions and padded length"
        )


def _sampling(sampling: Section) -> None:
    for key in ("temperature", "top_p"):
        sampling.copy(key, f"agent.algorithm.{key}")
    if sampling.get("top_k", -1) != -1:
        sampling.copy("top_k", "agent.algorithm.top_k")
    sampling.copy("max_tokens", "env.text.max_tokens")
    sampling.lacks(dict.fromkeys(("min_p", "presence_penalty", "frequency_penalty"), "has no counterpart"), (0,))
    sampling.lacks({"repetition_penalty": "has no counterpart"}, (1,))
    sampling.drop(
        {
            "stop": "left out: each task has its own stop strings, the same in training and evaluation",
            "include_stop_str_in_output": "left out: a stop string is trained on, and not verified",
            "logprobs": "left out: the log-probability of each token is always kept",
            "seed": "left out: completions are sampled from the run's seed, each differently",
        }
    )
    sampling.close()


def _verifier(verifier: Section) -> None:
    verifier.copy("num_workers", "env.text.workers")
    verifier.copy("timeout", "env.text.seconds")
    judged = "has no counterpart: answers are verified by their task"
    verifier.lacks(dict.fromkeys(("type", "role", "kwargs", "alpha", "judge"), judged))
    pool = "left out: the pool of verifiers has its own"
    verifier.drop(dict.fromkeys(("max_workers", "max_concurrent", "warmup", "truncate"), pool))
    verifier.close()


def _imitation(top: Section) -> None:
    """Supervised answers beside the completions: here they are reference answers of the same prompts, or none."""
    training, weight = top.below("training"), top.below("training").get("alpha_sft", 0)
    given = [key for key in ("sft_data", "sft_data_iter", "sft") if (training if key == "sft" else top).get(key)]
    for key in given:
        section = training if key == "sft" else top
        if weight:
            section.conversion.lose(
                section.at(key), "has no counterpart: sft_coef imitates reference answers of the same prompts"
            )
        else:
            section.conversion.remark(section.at(key), "left out: training.alpha_sft is 0")
    if weight and not given:
        training.copy("alpha_sft", "agent.algorithm.sft_coef")
        training.conversion.remark(training.at("alpha_sft"), "imitates the reference answers of its prompts")
