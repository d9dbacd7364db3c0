"""The `trainer` of a prime-rl file: loss, optimiser, learning rate, LoRA."""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.conversion import Section

OPTIMISERS = {"adamw": "adamw", "sgd": "sgd"}
DEFAULTS = {"lr": 1e-6, "weight_decay": 0.01}
DIFFERENCE, DRIFT = 0.2, 1e-3
SPEED = "left out: it changes how fast passes are, not what they compute"
PLACES = "left out: it places work on devices; -s meta.processes=N shares a model among processes"
RECORDS = "left out: what a run records lies in its directory"
TRANSPORT = "left out: the generator reads the trainer's weights, so there is nothing to send"
MODEL = {
    "impl": SPEED,
    "attn": SPEED,
    "compile": SPEED,
    "ac_offloading": SPEED,
    "reshard_after_forward": SPEED,
    "fsdp_cpu_offload": SPEED,
    "optim_cpu_offload": SPEED,
    "ep": PLACES,
    "cp": PLACES,
    "dp_replicate": PLACES,
    "reduce_dtype": SPEED,
    "trust_remote_code": "left out: a model's folder never runs code",
    "seq_len": "left out: the model's context is the limit",
}
TRAINER = {
    "data": "left out: data comes from the tasks",
    "gc": SPEED,
    "dist_timeout_seconds": "left out: a process that dies ends the run at once",
    "weight_broadcast": TRANSPORT,
    "rollout_transport": TRANSPORT,
    "log": RECORDS,
    "wandb": RECORDS,
    "tokenizer": "left out: the model brings its own tokenizer",
    "ckpt": "left out: ckpt of the whole file says it",
    "max_steps": "left out: max_steps of the whole file says it",
    "max_async_level": "left out: max_async_level of the orchestrator says it",
}


def trainer(section: Section) -> None:
    """Everything that decides a gradient step."""
    _loss(section.below("loss"))
    _optimiser(section.below("optim"))
    _rates(section.below("scheduler"))
    _model(section.below("model"))
    section.lacks({"enable_router_replay": "has no counterpart: experts are routed anew in training"}, (False,))
    section.drop(TRAINER)
    section.close()


def _loss(loss: Section) -> None:
    """The policy gradient over a step's tokens, with a mask against drift: DPPO today, a range of ratios before."""
    conversion, origin = loss.conversion, loss.path
    conversion.set("agent.algorithm.loss", "reinforce", origin)
    conversion.set("agent.algorithm.aggregate", "token_mean", origin)
    older = [
        key for key in ("ratio_type", "token_mask_low", "token_mask_high", "kl_tau", "adv_tau") if key in loss.data
    ]
    if older:
        _masked(loss)
    else:
        _proximal(loss)
    loss.close()


def _masked(loss: Section) -> None:
    """Tokens whose ratio to the generator is outside a range are left out; the gradient of the rest is weighed."""
    conversion = loss.conversion
    conversion.set("agent.algorithm.importance", "icepop", loss.at("token_mask_low"))
    loss.copy("token_mask_low", "agent.algorithm.importance_low", 0.125)
    loss.copy("token_mask_high", "agent.algorithm.importance_high", 8.0)
    loss.only("ratio_type", {"token": "token"}, "has no counterpart: the mask is of tokens", "token")
    loss.lacks({"kl_tau": "has no counterpart: advantages are of rewards alone"}, (0,))
    loss.lacks({"adv_tau": "has no counterpart: advantages have weight 1"}, (1,))
    sequences = ("sequence_mask_low", "sequence_mask_high", "geo_mask_low", "geo_mask_high", "sequence_clip_high")
    loss.lacks(dict.fromkeys(sequences, "has no counterpart: the mask is of tokens"))
    conversion.remark(loss.path, "masked and weighed by the ratio to the generator")


def _proximal(loss: Section) -> None:
    conversion = loss.conversion
    loss.only("type", {"default": "default"}, "has no counterpart: a loss of one's own is not loaded", "default")
    low, high = loss.get("dppo_mask_low", DIFFERENCE), loss.get("dppo_mask_high", DIFFERENCE)
    if low != high:
        conversion.lose(loss.at("dppo_mask_low"), "has no counterpart: one difference serves both directions")
    conversion.set("agent.algorithm.importance", "dppo", loss.path)
    conversion.set("agent.algorithm.importance_difference", high, loss.at("dppo_mask_high"))
    conversion.set("agent.algorithm.mismatch_coef", loss.get("kl_tau", DRIFT), loss.at("kl_tau"))
    said = "policy gradient with DPPO's mask and a squared term against drift, as is its default"
    conversion.remark(loss.path, said)


def _optimiser(optim: Section) -> None:
    kind = optim.only("type", OPTIMISERS, "has no counterpart: there are adamw and sgd", "adamw") or "adamw"
    optim.conversion.set("agent.model.optimizer.name", kind, optim.at("type"))
    for key, default in DEFAULTS.items():
        optim.copy(key, f"agent.model.optimizer.{key}", default)
    optim.copy("max_norm", "agent.model.optimizer.clip_grad_norm", 1.0)
    betas: Any = optim.get("betas")
    if betas is None and ("betas1" in optim.data or "betas2" in optim.data):
        betas = [optim.get("betas1", 0.9), optim.get("betas2", 0.999)]
    if betas is not None and kind == "adamw":
        optim.conversion.set("agent.model.optimizer.betas", betas, optim.at("betas"))
    optim.close()


def _rates(scheduler: Section) -> None:
    kind = scheduler.get("type", "constant")
    scheduler.copy("warmup_steps", "agent.model.optimizer.warmup_updates")
    if kind == "linear":
        scheduler.conversion.set("agent.model.optimizer.lr_end_fraction", 0.0, scheduler.at("type"))
        scheduler.lacks({"min_lr": "has no counterpart: the learning rate falls to a fraction, here 0"}, (0,))
        scheduler.lacks({"decay_steps": "has no counterpart: the learning rate falls over the whole run"})
    elif kind != "constant":
        scheduler.conversion.lose(scheduler.at("type"), "has no counterpart: there are constant and linear")
    scheduler.drop(dict.fromkeys(("min_lr", "decay_steps"), "left out: the learning rate does not fall"))
    scheduler.close()


def _model(model: Section) -> None:
    """What is said of the weights; `name` is read where the model is chosen."""
    conversion = model.conversion
    if model.get("ac") is not None:
        conversion.set("agent.model.gradient_checkpointing", True, model.at("ac"))
        if model.below("ac").get("freq", 1) != 1:
            conversion.remark(model.below("ac").at("freq"), "every layer is computed twice")
    for key in ("optimization_dtype", "dtype"):
        if model.get(key) is not None:
            model.copy(key, "agent.model.dtype")
    if model.get("lora") is not None:
        _lora(model.below("lora"))
    model.lacks({"quantization": "has no counterpart: weights are float32 or bfloat16"})
    model.drop(MODEL)
    model.close()


def _lora(lora: Section) -> None:
    for key, default in (("rank", 16), ("alpha", 32.0), ("dropout", 0.0)):
        lora.copy(key, f"agent.model.lora.{key}", default)
    lora.copy("target_modules", "agent.model.lora.targets")
    lora.drop({"modules_to_save": "left out: only adapters are trained"})
    lora.close()
