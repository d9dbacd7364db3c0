"""The `roles` of an rlvr-experiments file: a torchtitan trainer, vLLM servers, and what of them a spec keeps."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.conversion import Section

OPTIMISERS = {"AdamW": "adamw", "Adam": "adam"}
TITAN = {"lr": 8e-4, "eps": 1e-8, "weight_decay": 0.1}
"""torchtitan's own defaults, where ours differ."""
DTYPES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "bfloat16"}
PLACES = "left out: it places work on devices; -s meta.processes=N shares a model among processes"
RECORDS = "left out: what a run records lies in its directory"
SPEED = "left out: it changes how fast passes are, not what they compute"
DEGREES = (
    "data_parallel_replicate_degree", "data_parallel_shard_degree", "tensor_parallel_degree",
    "fsdp_reshard_after_forward", "enable_async_tensor_parallel", "disable_loss_parallel",
)  # fmt: skip
SERVER = "left out: the built-in generator shares the trainer's device and weights"
SERVING = (
    "tensor_parallel_size", "data_parallel_size", "max_concurrent_per_replica", "gpu_memory_utilization",
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "dtype", "enforce_eager", "enable_prefix_caching",
    "logprobs_mode", "seed", "trust_remote_code", "disable_log_stats", "enable_chunked_prefill", "load_format",
)  # fmt: skip


def roles(top: Section) -> None:
    """The trainer says model and optimiser; every other role must speak of the same model."""
    found = top.items("roles")
    trainer = next((each for each in found if each.data.get("kind") == "titan" and _trains(each)), None)
    source = _source(top, trainer)
    for role in found:
        kind = role.only("kind", {"titan": "titan", "vllm": "vllm"}, "is neither titan nor vllm")
        role.get("name")
        config = role.below("config")
        if role is trainer:
            _trainer(config)
        elif kind == "titan":
            top.conversion.remark(role.path, "left out: the reference is the first policy, kept beside the trainer")
            config.skip()
        elif kind == "vllm":
            _server(config, source)
        else:
            config.skip()
        role.close()
    if trainer is None:
        top.conversion.refuse(top.at("roles"), "has no trainable role of the kind titan")


def _trains(role: Section) -> bool:
    config = role.data.get("config")
    return isinstance(config, dict) and config.get("trainable", True) is not False


def _source(top: Section, trainer: Section | None) -> Any:
    """The model: the trainer's own path, or else the one that the file names for its records."""
    named = top.below("model")
    stated = named.get("path")
    own = trainer.below("config").below("model") if trainer is not None else None
    source = (own.get("hf_assets_path") if own is not None else None) or stated
    origin = own.at("hf_assets_path") if own is not None and own.get("hf_assets_path") else named.at("path")
    if source is None:
        top.conversion.refuse(named.at("path"), "is missing, and no role names a model")
    else:
        top.conversion.set("agent.model.source", source, origin)
    if stated is not None and stated != source:
        top.conversion.remark(named.at("path"), f"left out: the trainer loads {source}")
    named.close()
    return source


def _trainer(config: Section) -> None:
    """torchtitan's job, section by section."""
    optimiser = config.below("optimizer")
    name = optimiser.only("name", OPTIMISERS, "has no counterpart: there are AdamW and Adam", "AdamW")
    config.conversion.set("agent.model.optimizer.name", name or "adamw", optimiser.at("name"))
    for key, default in TITAN.items():
        optimiser.copy(key, f"agent.model.optimizer.{key}", default)
    betas = [optimiser.get("beta1", 0.9), optimiser.get("beta2", 0.95)]
    config.conversion.set("agent.model.optimizer.betas", betas, optimiser.at("beta1"))
    optimiser.drop({"implementation": SPEED, "early_step_in_backward": SPEED})
    optimiser.close()
    _rates(config.below("lr_scheduler"))
    _arithmetic(config)
    model = config.below("model")
    model.drop({"name": "left out: the folder says its architecture", "flavor": "left out: the folder says its sizes"})
    model.close()
    config.get("trainable")
    config.drop(dict.fromkeys(("checkpoint", "metrics", "profiling", "job"), RECORDS))
    config.drop({"compile": SPEED, "comm": PLACES, "experimental": SPEED, "debug": SPEED})
    config.close()


def _rates(schedule: Section) -> None:
    schedule.copy("warmup_steps", "agent.model.optimizer.warmup_updates")
    kind = schedule.get("decay_type", "linear")
    if kind not in ("linear", "constant"):
        schedule.conversion.lose(
            schedule.at("decay_type"), "has no counterpart: the learning rate falls linearly or not"
        )
    ratio = schedule.get("decay_ratio", 1)
    if ratio == 0 or kind == "constant":
        schedule.drop({"min_lr_factor": "left out: the learning rate does not fall"})
    elif ratio == 1 and schedule.data:
        schedule.copy("min_lr_factor", "agent.model.optimizer.lr_end_fraction", 0.0)
    elif schedule.data:
        why = "has no counterpart: the learning rate falls over the whole run or not at all"
        schedule.conversion.lose(schedule.at("decay_ratio"), why)
    schedule.close()


def _arithmetic(config: Section) -> None:
    """Precision, clipping, recomputation, and the parallelism that a result does not depend on."""
    conversion, training = config.conversion, config.below("training")
    training.copy("max_norm", "agent.model.optimizer.clip_grad_norm")
    key = "mixed_precision_param" if training.get("mixed_precision_param") is not None else "dtype"
    if training.get(key) is not None:
        kind = training.only(key, DTYPES, "has no counterpart: there are float32 and bfloat16")
        conversion.set("agent.model.dtype", kind or "float32", training.at(key))
        if training.get(key) == "float16":
            conversion.remark(training.at(key), "bfloat16 here: float16 would need a scaled loss")
    batches = "left out: batches are counted by agent.algorithm.batch_size"
    training.drop(dict.fromkeys(("local_batch_size", "global_batch_size", "seq_len", "steps"), batches))
    training.drop(dict.fromkeys(("mixed_precision_reduce", "dtype", "enable_cpu_offload", "gc_freq"), SPEED))
    training.drop({"compile": SPEED, "seed": "left out: run.seed decides", "deterministic": "left out: it always is"})
    training.close()
    recompute = config.below("activation_checkpoint")
    if recompute.get("mode", "none") != "none":
        conversion.set("agent.model.gradient_checkpointing", True, recompute.at("mode"))
    recompute.drop({"selective_ac_option": "left out: every layer is computed twice, or none"})
    recompute.close()
    parallelism = config.below("parallelism")
    refused = "has no counterpart, and its own trainer refuses it too"
    parallelism.lacks(dict.fromkeys(("pipeline_parallel_degree", "context_parallel_degree"), refused), (1,))
    parallelism.drop(dict.fromkeys(DEGREES, PLACES))
    parallelism.close()


def _server(config: Section, source: Any) -> None:
    """A vLLM engine, which gets its weights from the trainer."""
    if config.get("model", source) != source:
        config.conversion.lose(config.at("model"), f"is another model than the trainer's, {source}")
    for key in ("quantization", "speculative_config", "max_logprobs"):
        config.lacks({key: "has no counterpart"}, (0,))
    config.drop(dict.fromkeys(SERVING, SERVER))
    config.close()
