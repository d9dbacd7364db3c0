"""What the table of rlvr-experiments cannot say of training: counts in completions, losses, teachers, budgets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from operant.spec.dialects import rlvr_data
from operant.spec.dialects.conversion import Section, is_number

COUNT = re.compile("[0-9]{1,18}")
UNSAVED = (0, 9999)
LOSSES = {"grpo": "grpo", "drgrpo": "dr_grpo", "dapo": "dapo", "opsd": "gkd"}
DIVERGENCES = {"kl": "forward", "jsd": "jsd"}
ALGORITHM = "agent.algorithm"
REPLACED = "groups whose rewards are all equal are replaced, as its filter does; those completions are frames too"
MEANS = "the mean is over the tokens of the whole step, not of each pass and then of passes"


@dataclass(frozen=True)
class Sizes:
    """What the counts of a file come to, in frames: of a group, of a gradient step, of a round."""

    group: int
    step: int
    round: int


def sizes_of(top: Section) -> Sizes:
    """Prompts of a step and completions of a prompt, as one count of completions; for SFT of examples."""
    training, sampling, kind = top.below("training"), top.below("sampling"), top.conversion.kind
    prompts = max(1, training.whole("prompts_per_optim_step", 64 if kind == "sft" else 1))
    if kind == "sft":
        one = max(1, training.whole("sft_batch_size", training.whole("prompts_per_forward_backward", 2)))
        step = one * max(1, training.whole("sft_accumulation_steps", prompts // one))
        return Sizes(1, step, step)
    group = max(1, sampling.whole("n", 1))
    if kind == "distill":
        step = max(1, training.whole("batch_size", 1))
        return Sizes(group, step, step * max(1, training.whole("sync_every_n_steps", 1)))
    synced = max(prompts, training.whole("prompts_per_rollout_sync", prompts))
    return Sizes(group, prompts * group, synced // prompts * prompts * group)


def sizes(training: Section, key: str) -> None:
    """The round and its minibatches."""
    found = sizes_of(training.top)
    if training.conversion.kind == "sft":
        said = f"{found.step} examples in a gradient step; {MEANS}"
    else:
        training.need(key)
        said = f"{found.step // found.group} prompts x {found.group} completions in a gradient step"
    training.set(key, f"{ALGORITHM}.batch_size", found.round, said)
    if found.round > found.step:
        times = found.round // found.step
        training.set(key, f"{ALGORITHM}.minibatch_size", found.step)
        told = f"{times} steps between two updates of the generator: a round of {found.round} completions"
        training.remark("prompts_per_rollout_sync", f"{told} is learnt in {times} minibatches")


def group_size(sampling: Section, key: str) -> None:
    """Completions of a prompt; rewards need two of them to compare."""
    if sampling.conversion.kind == "sft":
        sampling.skip()
        return
    group = max(1, sampling.whole(key, 1))
    if group < 2 and sampling.conversion.kind == "rl":
        sampling.refuse(key, "leaves nothing to compare a completion with", "2 or more")
    sampling.set(key, f"{ALGORITHM}.group_size", max(group, 1))


def temperature(sampling: Section, key: str) -> None:
    """One temperature for all log-probabilities; vLLM's `raw_logprobs` are those of temperature 1."""
    sampling.copy(key, f"{ALGORITHM}.temperature")
    if sampling.get(key, 1) != 1:
        said = "log-probabilities of generator and reference are at this temperature too; theirs are at 1"
        sampling.remark(key, said)


def stop(sampling: Section, key: str) -> None:
    """Their stop strings in the place of each task's own."""
    if sampling.conversion.kind == "sft":
        return
    found = sampling.get(key, [])
    sampling.set(key, "env.text.stop", [found] if isinstance(found, str) else found)


def algorithm(top: Section) -> None:
    """What every file of a kind has."""
    conversion, kind = top.conversion, top.conversion.kind
    if kind == "sft":
        conversion.set(f"{ALGORITHM}.name", "sft", ("sft_data",))
    elif kind == "rl":
        conversion.set(f"{ALGORITHM}.old_logprobs", "generator", ("loss",))
        conversion.set(f"{ALGORITHM}.zero_variance", "resample", ("loss",))
        conversion.remark(("loss",), REPLACED)


def loss(top: Section, key: str) -> None:
    """Advantages, clipping, divergence from the reference, and what sums are divided by."""
    section, kind = top.below(key), top.conversion.kind
    if kind == "sft":
        section.skip()
        return
    name = section.only("name", LOSSES, f"is none of {', '.join(LOSSES)}", "opsd" if kind == "distill" else "drgrpo")
    name = "gkd" if kind == "distill" else name or "dr_grpo"
    section.set("name", f"{ALGORITHM}.name", name)
    if name == "gkd":
        section.skip()
        return
    _clipping(section, name)
    weight = top.below("training").number("alpha_grpo")
    beta = section.number("beta") or 0
    if beta:
        section.set("beta", f"{ALGORITHM}.kl", "k3")
        section.set("beta", f"{ALGORITHM}.kl_coef", beta * (1 if weight is None else weight))


def _clipping(section: Section, name: str) -> None:
    if name == "dapo":
        section.copy("eps_low", f"{ALGORITHM}.clip_low")
        section.copy("eps_high", f"{ALGORITHM}.clip_high")
        section.remark("name", MEANS)
        section.drop({"eps": "left out: dapo reads eps_low and eps_high", "C": "left out: dapo has no constant length"})
        return
    eps = section.number("eps")
    eps = (0.0 if name == "dr_grpo" else 0.2) if eps is None else eps
    if eps == 0:
        section.set("eps", f"{ALGORITHM}.loss", "reinforce")
        absent = "" if section.get("eps") is not None else "eps is absent, which is "
        section.remark("eps", f"{absent}no clipping for this loss: the loss is reinforce")
    else:
        for side in ("clip_low", "clip_high"):
            section.set("eps", f"{ALGORITHM}.{side}", eps)
    if name == "dr_grpo":
        if section.get("C") is None:
            section.remark("C", "C is absent: sums over tokens are divided by 2,048")
        section.copy("C", f"{ALGORITHM}.constant_length", 2048)
    section.drop({"C": f"left out: {name} has no constant length"})
    section.drop(dict.fromkeys(("eps_low", "eps_high"), f"left out: {name} reads eps"))


def budget(training: Section, key: str) -> None:
    """The budget in frames, from steps, or from passes over a dataset whose size is known."""
    conversion, found = training.conversion, sizes_of(training.top)
    if conversion.is_given("env.max_frame"):
        training.get(key)
        return
    steps, epochs = training.get(key), training.get("num_epochs")
    if not steps:
        problems = rlvr_data.problems(training.top)
        if not epochs or problems is None:
            training.refuse(key, "is missing", "give it by -s env.max_frame=VALUE")
            return
        frames = max(1, training.whole("num_epochs", 1)) * problems * found.group
        told = f"no max_steps: {epochs} passes over {problems:,} problems x {found.group} completions"
        training.set("num_epochs", "env.max_frame", frames, f"{told} = {frames:,} frames")
        return
    before = training.whole("resume_step", 0)
    steps = max(1, training.whole(key, 1) - before)
    training.set(key, "env.max_frame", steps * found.step)
    what = "examples" if conversion.kind == "sft" else "completions"
    training.remark(key, f"{steps:,} steps x {found.step} {what} = {steps * found.step:,} frames")
    if before:
        told = "the steps after it, from the model that it names; operant resume RUN goes on with a run of ours"
        training.remark("resume_step", told)


def epochs(training: Section, key: str) -> None:
    """Passes over the data count where there are no steps; their trainer with steps ignores them."""
    if training.get(key) is not None and training.get("max_steps"):
        training.remark(key, "left out: max_steps ends the run")


def saving(training: Section, key: str) -> None:
    """How often to save, evaluate and log."""
    found, every = sizes_of(training.top), training.whole(key, 50)
    training.set(key, "meta.log_frequency", found.round)
    if every in UNSAVED:
        return
    for name in ("save_frequency", "eval_frequency"):
        training.set(key, f"meta.{name}", every * found.step)
    said = f"a checkpoint and an evaluation every {every} steps = {every * found.step:,} frames"
    training.remark(key, f"{said}, a metric row after every round")


def staleness(training: Section, key: str) -> None:
    """How many updates old the weights that generated a completion may be; no less than a round."""
    found, allowed = sizes_of(training.top), training.whole(key, 0)
    steps = found.round // found.step
    if allowed >= steps:
        training.set(key, f"{ALGORITHM}.staleness", allowed)
    elif allowed:
        told = f"an upper limit, which holds: a round has {steps} updates, and nothing is generated ahead"
        training.remark(key, told)


def reference(training: Section, key: str) -> None:
    """When the policy takes the reference's place."""
    conversion, loss = training.conversion, training.top.below("loss")
    prompts = training.whole(key, 0)
    every = max(1, prompts // max(1, training.whole("prompts_per_optim_step", 1)))
    if not prompts or conversion.kind == "sft" or not loss.number("beta"):
        return
    if training.get("max_steps") and every >= training.whole("max_steps", 1):
        training.remark(key, "never in this budget: the reference stays the first policy")
        return
    training.set(key, f"{ALGORITHM}.reference_updates", min(every, 10**9))


def max_reads(buffer: Section, key: str) -> None:
    """How often a completion is learnt from; where none may be older than the weights, only once."""
    if buffer.get(key, 1) != 1 and buffer.top.below("training").get("max_staleness", 0) == 0:
        told = "left out: with max_staleness 0 a completion is learnt from by the weights that wrote it, which is once"
        buffer.remark(key, told)
    else:
        buffer.lacks({key: "has no counterpart: a completion is learnt from in its own round"}, (1,))


def pass_tokens(training: Section, key: str) -> None:
    """Completions of a micro-batch times their padded length is what one pass holds at most."""
    buckets, size = training.get("seq_len_buckets"), training.get(key)
    longest = max((each for each in buckets if isinstance(each, int)), default=0) if isinstance(buckets, list) else 0
    products = size.items() if isinstance(size, dict) else [(longest, size)]
    counts = [(str(a), str(b)) for a, b in products]
    tokens = max((int(a) * int(b) for a, b in counts if COUNT.fullmatch(a) and COUNT.fullmatch(b)), default=0)
    if tokens:
        training.set(key, f"{ALGORITHM}.pass_tokens", tokens)
        training.remark(key, f"{tokens:,} tokens in one pass: the largest product of completions and padded length")


def sft_weight(training: Section, key: str) -> None:
    """Supervised learning beside rewards; without data their trainer has none, whatever its weight."""
    top, weight = training.top, training.number(key)
    data = top.below("sft_data")
    if training.conversion.kind != "rl" or weight is None:
        return
    if weight and data.data:
        training.set(key, f"{ALGORITHM}.sft_coef", weight)
        examples = training.whole("prompts_per_optim_step", 1)
        training.set(key, f"{ALGORITHM}.sft_batch_size", examples)
        training.remark(key, f"{examples} examples beside each gradient step; {MEANS}")
    elif weight:
        training.remark(key, "left out: without sft_data their trainer imitates nothing")


def sft_data(top: Section, key: str) -> None:
    """The file of examples; their answers are imitated without the end of text, and cut at the longest bucket."""
    section, training, conversion = top.below(key), top.below("training"), top.conversion
    weight = 1 if conversion.kind == "sft" else training.number("alpha_sft")
    if not section.data or conversion.kind == "distill" or not weight:
        section.skip()
        if section.data:
            top.remark(key, "left out: training.alpha_sft is 0, so nothing is imitated")
        return
    if section.get("dataset", "sft_jsonl") != "sft_jsonl":
        section.lose("dataset", "has no answers to imitate: sft_jsonl is a file of them")
    ours = f"{ALGORITHM}.sft_data"
    section.need("path")
    section.copy("path", f"{ours}.path")
    subset = section.get("subset")
    if subset is not None:
        section.set("subset", f"{ours}.subset", [subset] if isinstance(subset, str) else subset)
    section.set("path", f"{ours}.end_of_text", False)
    sft = training.data.get("sft")
    own = sft.get("completion_len_buckets") if isinstance(sft, dict) else None
    own = own or training.get("completion_len_buckets") or [512]
    if isinstance(own, list) and is_number(own[-1]):
        section.set("path", f"{ours}.max_tokens", own[-1])
    section.drop({"split": "left out: the file is used whole"})
    if conversion.kind == "sft":
        rlvr_data.evaluated(section, "path")


def policy_weight(training: Section, key: str) -> None:
    """The weight of rewards beside the teacher."""
    weight = training.number(key)
    if training.conversion.kind == "rl" and weight not in (None, 1):
        training.set(key, f"{ALGORITHM}.policy_coef", weight)


def teacher(training: Section, key: str) -> None:
    """The teacher, how it is asked, and how far from it the policy may be."""
    conversion, top = training.conversion, training.top
    alone = conversion.kind == "distill"
    settings = ("teacher_top_k", "alpha_gkd", "jsd_alpha")
    if not alone and not any(training.get(each) is not None for each in settings):
        return
    role = next((each for each in top.items("roles") if each.data.get("name") == "teacher"), None)
    source = role.below("config").get("model") if role is not None else None
    origin = role.below("config").at("model") if role is not None else training.at(key)
    if source is None and not alone:
        training.refuse(key, "has no teacher: no role has this name")
        return
    conversion.set(f"{ALGORITHM}.teacher", source or "self", origin)
    training.copy(key, f"{ALGORITHM}.teacher_top_k", 32 if alone else 20)
    if not alone:
        training.copy("alpha_gkd", f"{ALGORITHM}.teacher_coef", 0.1)
    _divergence(training, source is None, alone)


def _divergence(training: Section, itself: bool, alone: bool) -> None:
    conversion, one = training.conversion, training.top.below("sampling").whole("n", 1) == 1
    kind = training.get("opsd_loss_type", "jsd" if one or not alone else "kl")
    if kind not in DIVERGENCES:
        why = "is a loss that their own program does not define" if kind == "l2" else "is neither jsd nor kl"
        training.lose("opsd_loss_type", why, "-s training.opsd_loss_type=jsd")
        kind = "jsd"
    training.set("opsd_loss_type", f"{ALGORITHM}.teacher_kl", DIVERGENCES[kind])
    if kind == "jsd":
        training.copy("jsd_alpha", f"{ALGORITHM}.jsd_alpha", 0.9)
    asked = "answer" if itself else "chat" if training.get("teacher_use_chat_template", True) else "same"
    training.set("teacher_use_chat_template", f"{ALGORITHM}.teacher_prompt", asked)
    if itself:
        told = "no role is called teacher: the policy itself is told the answer first"
        training.remark("teacher_top_k", told)
    if alone and not one and training.get("discard_perfect_completions", True):
        where = training.at("discard_perfect_completions")
        conversion.set(f"{ALGORITHM}.learn_from", "unsolved", where)
        told = "only completions that are not right are learnt from; a step counts those that are generated"
        conversion.remark(where, told)
