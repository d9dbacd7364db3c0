"""The training files of rlvr-experiments: one table, from which they are translated to native specs.

Such a file counts in prompts where a spec counts in completions, gives every engine a section of its own under
`roles`, and has no evaluation. Which of their programs trains with it follows from what it holds: `rl` (GRPO, SFT or a
teacher beside it), `distill` (a teacher alone) or `sft`. What they say of engines, ports and buffers decides how fast a
run is and not what it learns.
"""

from __future__ import annotations

from typing import Any

from operant.spec.dialects import rlvr_data, rlvr_training
from operant.spec.dialects.conversion import Section
from operant.spec.dialects.converter import Converter, has_shape
from operant.spec.dialects.table import (
    Row,
    Table,
    elsewhere,
    ignored,
    only_of,
    read,
    refused,
    same,
    taken,
    under,
    worked,
)

LAB = "rlvr-experiments"
SPEED = "it changes how fast passes are, not what they compute"
RECORDS = "what a run records lies in its directory"
PLACES = "it places work on devices; -s meta.processes=N shares a model among processes"
SERVER = "the built-in generator shares the trainer's device and weights"
BATCHES = "batches are counted by agent.algorithm.batch_size"
SHAPES = "passes are packed by tokens (agent.algorithm.pass_tokens), without fixed shapes"
WHOLE_LENGTHS = "passes have no fixed shapes, and drop no completions"
POOL = "the pool of verifiers has its own"
JUDGED = "has no counterpart: answers are verified by their task"
PENALTY = "has no counterpart"
UNKNOWN_THERE = "has no counterpart, and their own trainer refuses it too"
ALGORITHM = "agent.algorithm"
OPTIMIZER = "agent.model.optimizer"

RUN = (
    same("name", "what the run is called", "name"),
    taken("run.name", "what the run is called", "name"),
    same("run.seed", "seed of the order of prompts and of everything else", "meta.seed", default=42),
    ignored("run.port_start", "first port of their processes", "one process needs no ports"),
    worked("model.path", "the model, for their records", "agent.model.source", rlvr_data.model),
    ignored("tokenizer", "the tokenizer", "the model brings its own tokenizer"),
    ignored("trace_path", "where traces go", RECORDS),
    ignored("sync", "who sends weights to whom", "the generator reads the trainer's weights: there is nothing to send"),
    worked("buffer.max_reads", "how often a completion is learnt from", "", rlvr_training.max_reads),
    ignored("buffer.maxsize", "completions that wait", "a round is learnt from as soon as it is verified"),
)  # fmt: skip
DATA = (
    worked("data", "the prompts to train on", "env.name, env.text", rlvr_data.data),
    *under(
        "data_iter",
        same("order", "a file of prompt ids, in their order", "env.text.order"),
        same(
            "skip_chat_template",
            "prompts as plain text",
            "agent.model.template",
            values={True: "raw", False: "chat"},
            default=True,
        ),
        same("system_prompt", "text before prompts that have none", "env.text.system"),
        same("assistant_prefix", "text after prompts that have none", "env.text.prefix"),
    ),
    *under(
        "verifier",
        same("num_workers", "processes that verify", "env.text.workers"),
        same("timeout", "seconds of a verification", "env.text.seconds"),
        refused("type role kwargs alpha judge", "a judge", JUDGED),
        ignored("max_workers max_concurrent warmup truncate", "their pool", POOL),
    ),
)
SAMPLING = under(
    "sampling",
    worked("n", "completions of a prompt", f"{ALGORITHM}.group_size", rlvr_training.group_size),
    worked("temperature", "of sampling", f"{ALGORITHM}.temperature", rlvr_training.temperature),
    same("top_p", "probability that is drawn from", f"{ALGORITHM}.top_p"),
    same("top_k", "tokens that are drawn from; -1 for all", f"{ALGORITHM}.top_k", nothing=-1),
    worked("max_tokens", "longest completion, where a dataset has none", "env.text.max_tokens", rlvr_data.max_tokens),
    worked("stop", "texts that end a completion; none by default", "env.text.stop", rlvr_training.stop),
    same("min_p", "part of the likeliest token's probability", f"{ALGORITHM}.min_p"),
    refused("presence_penalty frequency_penalty", "of sampling", PENALTY, (0,)),
    refused("repetition_penalty", "of sampling", PENALTY, (1,)),
    ignored("include_stop_str_in_output", "of vLLM", "a stop string is trained on, and not verified"),
    ignored("logprobs", "of vLLM", "the log-probability of each token is always kept"),
    ignored("seed", "of vLLM", "completions are sampled from the run's seed, each differently"),
)
LOSS = (
    worked(
        "loss",
        "loss and advantages: by `name` drgrpo (default), grpo, dapo or opsd; clipping `eps` (0.2, of drgrpo none), "
        "`eps_low`, `eps_high`; length `C` (2,048); KL `beta`",
        f"{ALGORITHM}.name, {ALGORITHM}.loss, {ALGORITHM}.kl_coef, {ALGORITHM}.constant_length",
        rlvr_training.loss,
    ),
)
STEPS = under(
    "training",
    *only_of(
        ("rl", "sft"),
        worked("prompts_per_optim_step", "prompts of a gradient step", f"{ALGORITHM}.batch_size", rlvr_training.sizes),
    ),
    *only_of(
        ("distill",),
        worked("batch_size", "completions of a gradient step", f"{ALGORITHM}.batch_size", rlvr_training.sizes),
        ignored("minibatch_size", "completions of one pass", SHAPES),
        taken("sync_every_n_steps", "steps between updates of the generator", ""),
        ignored("prompts_per_reference_sync", "prompts between updates of the reference", "there is no reference"),
    ),
    worked("max_steps", "gradient steps of the run", "env.max_frame", rlvr_training.budget),
    worked("num_epochs", "passes over the data, without max_steps", "env.max_frame", rlvr_training.epochs),
    taken("resume_step", "steps that were taken before", "env.max_frame"),
    worked("checkpoint_interval", "steps between checkpoints", "meta.save_frequency", rlvr_training.saving),
    worked("max_staleness", "updates that a completion may be old", f"{ALGORITHM}.staleness", rlvr_training.staleness),
    taken(
        "prompts_per_rollout_sync", "prompts between updates of the generator", f"{ALGORITHM}.minibatch_size"),
    worked(
        "prompts_per_reference_sync", "prompts between updates of the reference", f"{ALGORITHM}.reference_updates",
        rlvr_training.reference,
    ),
    ignored("seq_len_buckets", "padded lengths; longer ones are dropped", WHOLE_LENGTHS),
    worked(
        "completions_per_micro_batch", "completions of a pass, by padded length", f"{ALGORITHM}.pass_tokens",
        rlvr_training.pass_tokens,
    ),
    ignored("completion_len_buckets", "padded lengths of completions", SHAPES),
    ignored("completions_per_micro_batch_reference", "completions of a pass of the reference", SHAPES),
    ignored("prompts_per_forward_backward", "prompts of one pass", SHAPES),
    ignored("abort_in_flight", "abort generation when weights change", "a completion is generated to its end"),
    ignored("max_concurrent_tasks", "prompts under way", "generation and training share one process"),
    ignored("rollout_timeout_s", "seconds of a completion", "completions end by their length"),
    ignored("adaptive_sampling", "completions until enough succeed", "only their trainer LEGACY_DO_NOT_USE reads it"),
)  # fmt: skip
SFT = (
    worked("training.alpha_sft", "weight of supervised learning", f"{ALGORITHM}.sft_coef", rlvr_training.sft_weight),
    worked("sft_data", "answers to imitate: a file of JSON lines", f"{ALGORITHM}.sft_data", rlvr_training.sft_data),
    ignored("sft_data_iter", "how its prompts are wrapped", "prompts are wrapped as those of data_iter are"),
    ignored("training.sft", "shapes of its passes", SHAPES),
    taken("training.sft_batch_size training.sft_accumulation_steps", "examples of a pass, passes of a step",
           f"{ALGORITHM}.batch_size"),
)  # fmt: skip
TEACHER = under(
    "training",
    worked("alpha_grpo", "weight of the loss of rewards", f"{ALGORITHM}.policy_coef", rlvr_training.policy_weight),
    worked(
        "teacher_top_k", "the teacher's likeliest tokens that are compared", f"{ALGORITHM}.teacher_top_k",
        rlvr_training.teacher,
    ),
    *(
        taken(key, means, f"{ALGORITHM}.{ours}")
        for key, means, ours in (
            ("alpha_gkd", "weight of distillation", "teacher_coef"),
            ("jsd_alpha", "the teacher's share in the mixture", "jsd_alpha"),
            ("opsd_loss_type", "divergence: jsd or kl", "teacher_kl"),
            ("teacher_use_chat_template", "wrap the teacher's prompts", "teacher_prompt"),
            ("discard_perfect_completions", "learn from wrong completions only", "learn_from"),
        )
    ),
)  # fmt: skip
TRAINER = (
    taken("trainable", "whether the role learns", ""),
    *under(
        "optimizer",
        same("name", "optimizer", f"{OPTIMIZER}.name", default="AdamW", values={"AdamW": "adamw", "Adam": "adam"}),
        same("lr", "learning rate", f"{OPTIMIZER}.lr", default=8e-4),
        same("eps", "epsilon", f"{OPTIMIZER}.eps", default=1e-8),
        same("weight_decay", "weight decay", f"{OPTIMIZER}.weight_decay", default=0.1),
        worked("beta1", "decay of the first moment", f"{OPTIMIZER}.betas", rlvr_data.betas),
        taken("beta2", "decay of the second moment", f"{OPTIMIZER}.betas"),
        ignored("implementation", "how it is computed", SPEED),
        ignored("early_step_in_backward", "how it is computed", SPEED),
    ),
    *under(
        "lr_scheduler",
        same("warmup_steps", "updates over which the rate rises", f"{OPTIMIZER}.warmup_updates"),
        worked("decay_ratio", "part of the run over which it falls", f"{OPTIMIZER}.lr_end_fraction", rlvr_data.rates),
        taken("decay_type", "how it falls", f"{OPTIMIZER}.lr_end_fraction"),
        taken("min_lr_factor", "where it ends", f"{OPTIMIZER}.lr_end_fraction"),
    ),
    *under(
        "training",
        same("max_norm", "largest gradient norm", f"{OPTIMIZER}.clip_grad_norm"),
        worked("mixed_precision_param", "precision of passes", "agent.model.dtype", rlvr_data.precision),
        taken("dtype", "precision of the weights", "agent.model.dtype"),
        ignored("local_batch_size global_batch_size seq_len steps", "torchtitan's own", BATCHES),
        ignored("mixed_precision_reduce enable_cpu_offload gc_freq compile", "how it is computed", SPEED),
        ignored("seed", "torchtitan's own", "run.seed decides"),
        ignored("deterministic", "torchtitan's own", "it always is"),
    ),
    same("activation_checkpoint.mode", "compute activations twice", "agent.model.gradient_checkpointing",
         values={"none": None, "selective": True, "full": True, "memory_budget": True}),
    ignored("activation_checkpoint.selective_ac_option", "which layers", "every layer is computed twice, or none"),
    *under(
        "parallelism",
        refused("pipeline_parallel_degree context_parallel_degree", "parallelism", UNKNOWN_THERE, (1,)),
        ignored("*", "parallelism", PLACES),
    ),
    taken("model.hf_assets_path", "the model", "agent.model.source"),
    ignored("model.name", "its architecture", "the folder says its architecture"),
    ignored("model.flavor", "its sizes", "the folder says its sizes"),
    ignored("checkpoint metrics profiling job", "torchtitan's own", RECORDS),
    ignored("compile experimental debug", "torchtitan's own", SPEED),
    ignored("comm", "torchtitan's own", PLACES),
    ignored("seed", "no key of torchtitan's", "their trainer does not read it; run.seed decides"),
)  # fmt: skip
SERVERS = (
    worked("model", "the model that it serves", "agent.model.source", rlvr_data.served_model),
    refused("quantization speculative_config max_logprobs", "of vLLM", PENALTY, (0,)),
    ignored(
        "tensor_parallel_size data_parallel_size max_concurrent_per_replica gpu_memory_utilization max_model_len"
        " max_num_seqs max_num_batched_tokens dtype enforce_eager seed enable_prefix_caching logprobs_mode"
        " trust_remote_code disable_log_stats enable_chunked_prefill load_format",
        "of vLLM",
        SERVER,
    ),
)
NAMES = (
    elsewhere("roles.*.name", "the role's name: a `teacher` is another model", "agent.algorithm.teacher"),
    elsewhere("roles.*.kind", "the program of the role: titan learns, vllm generates", "agent.model.source"),
)
FILE = (*RUN, *DATA, *SAMPLING, *LOSS, *STEPS, *SFT, *TEACHER)
ROLES: dict[str, tuple[Row, ...]] = {"titan": TRAINER, "vllm": SERVERS}


def kind_of(data: Any) -> str:
    """Which of their programs a file is for."""
    data = data if isinstance(data, dict) else {}
    training, loss = (data.get(key) if isinstance(data.get(key), dict) else {} for key in ("training", "loss"))
    if data.get("sft_data") and not data.get("data"):
        return "sft"
    alone = loss.get("name") == "opsd" or ("batch_size" in training and "teacher_top_k" in training)
    return "distill" if alone else "rl"


TABLE = Table((*FILE, *NAMES, *under("roles.*.config", *TRAINER, *SERVERS)), kind_of)


def recognises(content: Any) -> bool:
    """Whether plain data has the shape of such a file: `roles` is the one key that every one of them has."""
    return has_shape(content, "roles", list, foreign="env")


def _sections(top: Section) -> None:
    conversion = top.conversion
    for path, first, last in conversion.theirs.repeated:
        conversion.remark(path, f"given on lines {first} and {last}: the last one counts, as in their YAML loader")
    rlvr_data.roles(top, ROLES)
    read(top, [row for row in TABLE.chosen(conversion.kind) if row.parts[0] != "roles"])
    rlvr_training.algorithm(top)
    conversion.set("meta.device", "auto", ("roles",))
    conversion.set("meta.max_session", 1, ("run",))
    top.close_all()


convert = Converter(LAB, _sections, TABLE)
