"""Every setting of prime-rl's files that is understood: what it means there, and what it is here."""

from __future__ import annotations

from operant.spec.dialects.conversion import Conversion, Section, is_number
from operant.spec.dialects.prime_rl_env import environments
from operant.spec.dialects.table import Table, elsewhere, ignored, refused, same, under, worked
from operant.spec.reading.document import lookup

BATCH, GROUP, EVAL_INTERVAL = 128, 1, 100
DIFFERENCE, DRIFT = 0.2, 1e-3
CREDITS = {"grpo": "dr_grpo", "max_rl": "max_rl"}
AGES = ("max_async_level", "max_off_policy_steps")
RATIO_KEYS = ("ratio_type", "token_mask_low", "token_mask_high", "sequence_mask_low", "geo_mask_low")
RATIO_SIGNS = ("inference_gpu_ids", "trainer_gpu_ids")
PLACES = "it places work on devices; -s meta.processes=N shares a model among processes"
RECORDS = "what a run records lies in its directory; -s meta.track=wandb feeds Weights & Biases too"
SERVER = "the built-in generator shares the trainer's device and weights"
TRANSPORT = "the generator reads the trainer's weights, so there is nothing to send"
FLOW = "env.text.dialogue.concurrency says how many rollouts are under way at once"
SPEED = "it changes how fast passes are, not what they compute"
TOKENIZER = "the model brings its own tokenizer"
CONTEXT = "the model's context is the limit, and env.text.max_tokens that of a completion"
ONCE = "it is said once, for the whole run"
WISHES = "has no counterpart: temperature, top_p and top_k say how tokens are sampled"
SEED = "the run's seed orders the problems and draws the completions"


def count(conversion: Conversion, default: int, *path: str) -> int:
    """A whole number of the file, for arithmetic; whether it is one is judged where it is read."""
    value = lookup(conversion.theirs.data, path)
    return int(value) if is_number(value) and float(value).is_integer() else default


def _batch(conversion: Conversion) -> int:
    return max(1, count(conversion, BATCH, "orchestrator", "batch_size"))


def _frames(section: Section, key: str) -> None:
    batch = _batch(section.conversion)
    steps = max(1, section.whole(key, 1))
    section.set(key, "env.max_frame", steps * batch, f"{steps} steps x {batch} completions = {steps * batch:,} frames")


def _completions(section: Section, key: str) -> None:
    batch, group = section.whole(key, BATCH), _group_size(section.conversion)
    section.set(key, "agent.algorithm.batch_size", batch)
    section.remark(key, f"{batch} completions of a step = {batch // group} prompts x {group}")


def _group_size(conversion: Conversion) -> int:
    older = count(conversion, GROUP, "orchestrator", "rollouts_per_example")
    return max(2, count(conversion, older, "orchestrator", "group_size"))


def _group(section: Section, key: str) -> None:
    other = "rollouts_per_example" if key == "group_size" else "group_size"
    if section.data.get(key) is None and (key == "rollouts_per_example" or section.data.get(other) is not None):
        return
    if section.whole(key, GROUP) < 2:
        section.refuse(key, "leaves nothing to compare a completion with", "2 or more")
    section.set(key, "agent.algorithm.group_size", _group_size(section.conversion))


def _interval(section: Section, key: str) -> None:
    """Checkpoints and rows every so many steps; without an interval a checkpoint at the end."""
    conversion, batch = section.conversion, _batch(section.conversion)
    given = section.get(key) is not None
    every = max(1, section.whole(key, count(conversion, 1, "max_steps")))
    section.set(key, "meta.save_frequency", every * batch)
    conversion.set("meta.log_frequency", batch, section.path)
    if given:
        section.remark(key, f"every {every} steps = {every * batch:,} frames")


def _evaluation(section: Section, key: str) -> None:
    """The same held-out problems every so often; at the end only, where the file evaluates nothing."""
    conversion, batch = section.conversion, _batch(section.conversion)
    every = section.whole(key, EVAL_INTERVAL) if section.data else count(conversion, 1, "max_steps")
    section.set(key, "meta.eval_frequency", max(1, every) * batch)
    if section.data:
        section.remark(key, f"every {every} steps = {every * batch:,} frames")


def _model_name(section: Section, key: str) -> None:
    """The model's name, from the place where it is shared, or else from the trainer's own."""
    conversion = section.conversion
    theirs = lookup(conversion.theirs.data, ("trainer", "model", "name"))
    name, at = section.get(key, theirs), section.at(key) if section.get(key) else ("trainer", "model", "name")
    if name is None:
        section.refuse(key, "is missing", "the model to train")
    else:
        conversion.set("agent.model.source", name, at)
    if theirs is not None and theirs != name:
        conversion.lose(("trainer", "model", "name"), f"is another model than {name}")


def _steps_again(section: Section, key: str) -> None:
    """The trainer's own mention of the steps, which must agree with the orchestrator's."""
    theirs = lookup(section.conversion.theirs.data, ("orchestrator", key))
    if section.get(key) is not None and theirs is not None and section.get(key) != theirs:
        section.lose(key, f"differs from the orchestrator's {theirs}")


def _staleness(section: Section, key: str) -> None:
    """How far the generator may be behind: by the steps that it runs ahead, and by the age of rollouts that count."""
    found = [(section.whole(each, 0), each) for each in AGES if section.get(each) is not None]
    if not found or key != min(found)[1]:
        return
    section.set(key, "agent.algorithm.staleness", min(found)[0])
    for _, other in (each for each in found if each[1] != key):
        section.remark(other, f"an upper limit, which holds: {key} is no more, and is the staleness")


def _credit(section: Section, key: str) -> None:
    """Rewards less their group's mean, not divided by their deviation, unless an algorithm says otherwise."""
    conversion, algo, at = section.conversion, section.get(key, "grpo"), section.at(key)
    if isinstance(algo, dict):
        inner = section.below(key)
        inner.lacks({"length_penalty": "has no counterpart: rewards are as verified"})
        kind = "type" if "type" in algo else "name"
        algo, at = inner.get(kind, "grpo"), inner.at(kind)
    if isinstance(algo, str) and algo in CREDITS:
        conversion.set("agent.algorithm.credit", CREDITS[algo], at)
        conversion.set("agent.algorithm.scale", "none", at)
    else:
        conversion.lose(at, f"has no counterpart: there are {', '.join(CREDITS)}")


def _loss(section: Section, key: str) -> None:
    """The policy gradient over a step's tokens, with a mask and a term against drift from the generator."""
    loss, conversion, data = section.below(key), section.conversion, section.conversion.theirs.data
    conversion.set("agent.algorithm.loss", "reinforce", loss.path)
    conversion.set("agent.algorithm.aggregate", "token_mean", loss.path)
    by_ratio = any(each in loss.data for each in RATIO_KEYS) or any(each in data for each in RATIO_SIGNS)
    if by_ratio or conversion.their("orchestrator.trajectory_strategy") is not None:
        _masked_by_ratio(loss)
    else:
        _masked_by_difference(loss)


def _masked_by_ratio(loss: Section) -> None:
    """Until March 2026: tokens whose ratio is outside a range are left out; a KL to the generator where asked for."""
    conversion = loss.conversion
    loss.set("token_mask_low", "agent.algorithm.importance", "icepop")
    loss.copy("token_mask_low", "agent.algorithm.importance_low", 0.125)
    loss.copy("token_mask_high", "agent.algorithm.importance_high", 8.0)
    loss.only("ratio_type", ("token",), "has no counterpart: the mask is of tokens", "token")
    if loss.number("kl_tau"):
        loss.set("kl_tau", "agent.algorithm.mismatch_coef", loss.get("kl_tau"))
        loss.set("kl_tau", "agent.algorithm.mismatch_loss", "kl", "weight of the KL to the generator, in the loss")
    conversion.remark(loss.path, "masked and weighed by the ratio to the generator; whole sequences are not masked")


def _masked_by_difference(loss: Section) -> None:
    """DPPO, or IPO where its keys or its type say so, and the squared log-ratio to the generator."""
    conversion, kind = loss.conversion, loss.get("type", "default")
    ipo = kind == "ipo" or any(key.startswith("ipo_") for key in loss.data)
    if kind not in ("default", "ipo"):
        loss.lose("type", "has no counterpart: a loss of one's own is not loaded")
    name = "ipo" if ipo else "dppo"
    low, high = (loss.get(f"{name}_mask_{side}", DIFFERENCE) for side in ("low", "high"))
    if low != high:
        loss.lose(f"{name}_mask_low", "has no counterpart: one difference serves both directions")
    conversion.set("agent.algorithm.importance", name, loss.path)
    wide = loss.get("ipo_threshold", high) if ipo else high
    loss.set(f"{name}_mask_high", "agent.algorithm.importance_difference", wide)
    loss.set("kl_tau", "agent.algorithm.mismatch_coef", loss.get("kl_tau", DRIFT))
    if "kl_tau" in loss.data:
        loss.remark("kl_tau", "weight of the squared log-ratio to the generator, in the loss")
    march = "" if ipo else ", the default since April 2026 (-s agent.algorithm.importance=ipo for that of March)"
    conversion.remark(loss.path, f"policy gradient with {name.upper()}'s mask{march}")


def _betas(section: Section, key: str) -> None:
    parts = [section.get("betas1", 0.9), section.get("betas2", 0.999)]
    betas = section.get(key, parts if {"betas1", "betas2"} & set(section.data) else None)
    if betas is not None and section.get("type", "adamw") == "adamw":
        section.set(key, "agent.model.optimizer.betas", betas)


def _rates(section: Section, key: str) -> None:
    kind = section.get(key, "constant")
    if kind == "linear":
        section.set(key, "agent.model.optimizer.lr_end_fraction", 0.0)
        section.lacks({"min_lr": "has no counterpart: the learning rate falls to a fraction, here 0"}, (0,))
        section.lacks({"decay_steps": "has no counterpart: the learning rate falls over the whole run"})
    elif kind != "constant":
        section.lose(key, "has no counterpart: there are constant and linear")


def _checkpointing(section: Section, key: str) -> None:
    if section.get(key) is not None:
        section.set(key, "agent.model.gradient_checkpointing", True)
        if section.below(key).get("freq", 1) != 1:
            section.below(key).remark("freq", "every layer is computed twice")


def _lora(section: Section, key: str) -> None:
    if section.get(key) is None:
        return
    lora = section.below(key)
    for name, default in (("rank", 16), ("alpha", 32.0), ("dropout", 0.0)):
        lora.copy(name, f"agent.model.lora.{name}", default)
    lora.copy("target_modules", "agent.model.lora.targets")
    lora.drop({"modules_to_save": "left out: only adapters are trained"})


RUN = (
    same("name", "what the run is called", "name"),
    ignored("run.name", "what the run is called", "it names the spec"),
    ignored("run.dir", "folder of the run", "say --root DIR"),
    worked("max_steps", "optimizer steps", "env.max_frame", _frames, needed=True),
    worked("model.name", "the model to train", "agent.model.source", _model_name),
    ignored("model.trust_remote_code", "run code of the model's folder", "a model's folder never runs code"),
    worked("ckpt.interval", "steps between checkpoints", "meta.save_frequency, meta.log_frequency", _interval),
    same("ckpt.keep_last", "checkpoints that are kept", "meta.keep_checkpoints"),
    ignored("ckpt.keep_interval", "checkpoints that are kept for good", "the newest ones and the best one are kept"),
    ignored("ckpt.resume_step", "checkpoint to resume from", "operant resume RUN"),
    ignored("ckpt.weights_only ckpt.weights", "what a checkpoint holds", "every one has weights and can be resumed"),
    refused("resume", "run to resume", "has no counterpart: operant resume RUN goes on at a run's checkpoint"),
    ignored("output_dir", "folder of all files", "say --root DIR"),
    ignored("clean", "remove an earlier run", "nothing is ever overwritten"),
    ignored("dry_run", "check the file only", "operant check FILE"),
    ignored("env_vars", "variables of the programs", "set them where the command is run"),
    ignored("log monitors wandb", "what is logged, and where", RECORDS),
    ignored("tokenizer", "tokenizer of the model", TOKENIZER),
    ignored("inference_gpu_ids trainer_gpu_ids deployment slurm", "devices of the programs", PLACES),
    ignored("weight_broadcast rollout_transport", "how weights and rollouts are sent", TRANSPORT),
    ignored("seq_len", "longest sequence", CONTEXT),
    ignored("inference", "the server that writes completions", SERVER),
)
SAMPLING = (
    same("temperature", "temperature of completions", "agent.algorithm.temperature"),
    same("max_completion_tokens", "longest completion", "env.text.max_tokens"),
    same("max_tokens", "longest completion", "env.text.max_tokens"),
    refused("extra_body", "further wishes to the server", WISHES, nothing={}),
    refused("repetition_penalty", "penalty for tokens said before", "has no counterpart", (1,)),
    refused("min_tokens", "shortest completion", "has no counterpart", (0, 1)),
    same("top_p", "draw from the likeliest tokens of this probability", "agent.algorithm.top_p"),
    same("top_k", "draw from so many likeliest tokens", "agent.algorithm.top_k", nothing=-1),
    ignored("seed", "seed of completions", SEED),
)
ONE_EACH = "an evaluation answers each problem once, greedily"
HELD_OUT = "evaluations take held-out problems of the tasks that are trained on"
POOLS = "has no counterpart: problems are not sorted into pools"
ORCHESTRATOR = (
    refused("token_batch_size", "tokens of a step", "has no counterpart: batches count completions"),
    worked("group_size", "completions of each prompt", "agent.algorithm.group_size", _group),
    worked("rollouts_per_example", "completions of each prompt", "agent.algorithm.group_size", _group),
    worked("batch_size", "completions of a step", "agent.algorithm.batch_size", _completions),
    *under("sampling", *SAMPLING),
    *under("train.sampling", *SAMPLING),
    worked("algo", "how rewards become advantages", "agent.algorithm.credit, agent.algorithm.scale", _credit),
    refused("advantage.length_weighted_mean", "weigh a group's mean by lengths", "has no counterpart", (False,)),
    refused("advantage.type", "how rewards become advantages", "has no counterpart", ("default",)),
    same(
        "train.filter_zero_advantages",
        "drop what has no gradient",
        "agent.algorithm.zero_variance",
        default=True,
        values={True: "drop", False: "keep"},
    ),
    worked("eval.interval", "steps between evaluations", "meta.eval_frequency", _evaluation),
    same("eval.num_examples", "problems of an evaluation", "meta.eval_episodes"),
    ignored("eval.group_size eval.rollouts_per_example eval.sampling", "how problems are answered", ONE_EACH),
    ignored("eval.source eval.env", "environments of evaluations", HELD_OUT),
    ignored("eval.skip_first_step", "no evaluation at first", "a policy is always evaluated before it learns"),
    worked("max_async_level", "steps that the generator may be ahead", "agent.algorithm.staleness", _staleness),
    worked("max_off_policy_steps", "age of rollouts that count", "agent.algorithm.staleness", _staleness),
    worked("env", "environments", "env.name, env.text", environments),
    elsewhere("train.source", "environments", "env.name, env.text"),
    ignored("buffer.seed", "order of the problems", SEED),
    same(
        "buffer.online_difficulty_filtering",
        "drop equal groups",
        "agent.algorithm.zero_variance",
        values={True: "resample", False: None},
        said="groups whose rewards are all equal are replaced by others",
    ),
    refused(
        "buffer.easy_threshold buffer.hard_threshold buffer.easy_fraction buffer.hard_fraction",
        "pools by difficulty",
        POOLS,
    ),
    ignored("max_steps", "optimizer steps", ONCE),
    ignored("seq_len", "longest sequence", CONTEXT),
    ignored("concurrency tasks_per_minute workers_per_env", "rollouts at once", FLOW),
    ignored("use_token_client", "send tokens to the server", "training always uses the sampled tokens"),
    ignored("renderer", "how prompts are formatted", "agent.model.template says it"),
    ignored("log wandb", "what is logged, and where", RECORDS),
    ignored("client", "address of the server", SERVER),
    ignored("model ckpt output_dir name", "shared with the trainer", ONCE),
    ignored("tokenizer", "tokenizer of the model", TOKENIZER),
    ignored("weight_broadcast rollout_transport", "how weights and rollouts are sent", TRANSPORT),
)
SEQUENCES = "has no counterpart: the mask is of tokens"
TRAINER = (
    worked(
        "loss", "the loss, its mask and its weights", "agent.algorithm.importance, agent.algorithm.mismatch_coef", _loss
    ),
    refused("loss.adv_tau", "weight of advantages", "has no counterpart: advantages have weight 1", (1,)),
    refused("loss.teacher_tau", "weight of a teacher", "has no counterpart: agent.algorithm.teacher names one", (0,)),
    refused(
        "loss.sequence_mask_low loss.sequence_mask_high loss.geo_mask_low loss.geo_mask_high loss.sequence_clip_high",
        "masks of whole sequences",
        SEQUENCES,
    ),
    same(
        "optim.type",
        "optimizer",
        "agent.model.optimizer.name",
        default="adamw",
        values={"adamw": "adamw", "sgd": "sgd"},
    ),
    same("optim.lr", "learning rate", "agent.model.optimizer.lr", default=1e-6),
    same("optim.weight_decay", "weight decay", "agent.model.optimizer.weight_decay", default=0.01),
    same("optim.max_norm", "clip of the gradient's norm", "agent.model.optimizer.clip_grad_norm", default=1.0),
    worked("optim.betas", "Adam's averages", "agent.model.optimizer.betas", _betas),
    same("scheduler.warmup_steps", "steps of rising rate", "agent.model.optimizer.warmup_updates"),
    worked("scheduler.type", "course of the learning rate", "agent.model.optimizer.lr_end_fraction", _rates),
    ignored("scheduler.min_lr scheduler.decay_steps", "end of the learning rate", "the learning rate does not fall"),
    worked("model.ac", "compute activations twice", "agent.model.gradient_checkpointing", _checkpointing),
    same("model.optimization_dtype", "type of the weights", "agent.model.dtype"),
    same("model.dtype", "type of the weights", "agent.model.dtype"),
    worked("model.lora", "adapters", "agent.model.lora", _lora),
    refused("model.quantization", "bits of the weights", "has no counterpart: weights are float32 or bfloat16"),
    ignored("model.name", "the model to train", ONCE),
    ignored(
        "model.impl model.attn model.compile model.ac_offloading model.reshard_after_forward model.fsdp_cpu_offload"
        " model.optim_cpu_offload model.reduce_dtype",
        "how passes are computed",
        SPEED,
    ),
    ignored("model.ep model.cp model.dp_replicate", "devices of a model", PLACES),
    ignored("model.trust_remote_code", "run code of the model's folder", "a model's folder never runs code"),
    ignored("model.seq_len", "longest sequence", CONTEXT),
    refused(
        "enable_router_replay", "same experts in training", "has no counterpart: experts are routed anew", (False,)
    ),
    ignored("data", "where batches come from", "data comes from the tasks"),
    ignored("gc", "garbage collection", SPEED),
    ignored("dist_timeout_seconds", "patience with other processes", "a process that dies ends the run at once"),
    ignored("weight_broadcast rollout_transport", "how weights and rollouts are sent", TRANSPORT),
    ignored("log wandb", "what is logged, and where", RECORDS),
    ignored("tokenizer", "tokenizer of the model", TOKENIZER),
    ignored("ckpt max_async_level output_dir name", "shared with the orchestrator", ONCE),
    worked("max_steps", "optimizer steps", "env.max_frame", _steps_again),
)
TABLE = Table((*RUN, *under("orchestrator", *ORCHESTRATOR), *under("trainer", *TRAINER)))
