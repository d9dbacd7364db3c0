"""Policies: a language model with its tokenizer, from `tiny`, a Hugging Face folder, the hub's cache or a GGUF file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from operant.engines.language.policy.tiny import TinySizes, byte_tokenizer, tiny_model
from operant.errors import UsageError
from operant.install import missing_package

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CHAT_END = "<|im_end|>"
EXPECTED_ABSENT = ("rotary_emb.inv_freq", "masked_bias", "attn.bias")
"""Buffers of older checkpoints, which every model computes for itself."""


@dataclass(frozen=True)
class Policy:
    """A causal language model and what is needed to speak with it.

    `model` answers to Hugging Face's names, with LoRA wrapped around it where it was asked for. Generation ends
    with any of `eos_ids`; `pad_id` fills rows and is never trained on; texts begin with `bos_id` where there is one.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    eos_ids: tuple[int, ...]
    pad_id: int
    has_chat_template: bool
    name: str
    bos_id: int | None = None

    @property
    def context(self) -> int:
        """The most tokens that a prompt and its completion may have together."""
        return int(self.model.config.get_text_config().max_position_embeddings)

    @property
    def has_adapter(self) -> bool:
        """Whether only the small matrices of LoRA are trained."""
        return hasattr(self.model, "peft_config")


def load_policy(
    source: str,
    *,
    dtype: torch.dtype | str = "float32",
    device: torch.device | str = "cpu",
    seed: int = 0,
    lora: dict[str, Any] | None = None,
    gradient_checkpointing: bool = False,
    tiny: TinySizes | None = None,
) -> Policy:
    """The model called `source`: `tiny`, a folder, a GGUF file, a fetched model's name, or a hub id in the cache.

    Weights that do not fill the model exactly are refused. `lora` holds arguments of peft's `LoraConfig`.
    """
    import torch

    kind = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    model: Any
    tokenizer: Any
    if source == "tiny":
        model, tokenizer = tiny_model(tiny or TinySizes(), seed), byte_tokenizer()
    else:
        model, tokenizer = _pretrained(source, kind)
    return as_policy(
        model.to(device=device, dtype=kind),
        tokenizer,
        source,
        seed=seed,
        lora=lora,
        gradient_checkpointing=gradient_checkpointing,
    )


def as_policy(
    model: Any,
    tokenizer: Any,
    name: str,
    *,
    seed: int = 0,
    lora: dict[str, Any] | None = None,
    gradient_checkpointing: bool = False,
) -> Policy:
    """A model that is on its device, ready to be trained, with its tokenizer."""
    eos_ids, bos_id = _end_ids(model, tokenizer), _begin_id(model, tokenizer)
    _choose_pad(model, tokenizer, eos_ids)
    _disable_dropout(model)
    if gradient_checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if lora is not None:
        model = _with_adapter(model, lora, seed)
    return Policy(
        model=model.train(),  # pretrained models come in the other mode, in which layers ignore checkpointing
        tokenizer=tokenizer,
        eos_ids=eos_ids,
        pad_id=int(tokenizer.pad_token_id),
        has_chat_template=bool(getattr(tokenizer, "chat_template", None)),
        name=name,
        bos_id=bos_id,
    )


def check_source(source: str) -> None:
    """Refuse a model that is not on this machine, without loading it."""
    if source != "tiny":
        _locate(source)


def model_without_weights(source: str, tiny: TinySizes | None = None, lora: dict[str, Any] | None = None) -> Any:
    """The model called `source` on the meta device, which has shapes only; adapters that do not fit it are refused."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        if source == "tiny":
            model: Any = tiny_model(tiny or TinySizes(), 0)
        else:
            folder, arguments = _locate(source)
            model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder, **arguments))
        return model if lora is None else _with_adapter(model, lora, 0)


def check_vocabulary(source: str, teacher: PreTrainedTokenizerBase, policy: PreTrainedTokenizerBase) -> None:
    """Refuse a teacher that lacks tokens of the policy's, or numbers them otherwise; it may have more of them."""
    theirs, ours = teacher.get_vocab(), policy.get_vocab()
    differing = [
        token for token, number in sorted(ours.items(), key=lambda each: each[1]) if theirs.get(token) != number
    ]
    if not differing:
        return
    raise UsageError(
        f"the teacher's vocabulary differs: {len(differing):,} of the policy's {len(ours):,} tokens are not in it"
        f" under the same number, such as {differing[0]!r}",
        place=source,
        remedy="agent.algorithm.teacher: a model of the same family as agent.model.source",
    )


def load_tokenizer(source: str) -> PreTrainedTokenizerBase:
    """The tokenizer of the model called `source`, without its weights."""
    if source == "tiny":
        return byte_tokenizer()
    from transformers import AutoTokenizer

    folder, arguments = _locate(source)
    return AutoTokenizer.from_pretrained(folder, **arguments)


def load_reader(source: str, tiny_context: int) -> tuple[Policy, int]:
    """A policy that can only read prompts, for it has no weights, and the context of its model."""
    tokenizer = load_tokenizer(source)
    context = tiny_context
    if source != "tiny":
        from transformers import AutoConfig

        folder, arguments = _locate(source)
        context = int(AutoConfig.from_pretrained(folder, **arguments).get_text_config().max_position_embeddings)
    template = bool(getattr(tokenizer, "chat_template", None))
    begin: Any = tokenizer.bos_token_id
    bos_id = begin if begin in tokenizer("", add_special_tokens=True).input_ids else None
    return Policy(cast("PreTrainedModel", None), tokenizer, (), 0, template, source, bos_id), context


def write_folder(policy: Policy, path: Path) -> Path:
    """Write weights, configuration and tokenizer as a folder that `AutoModelForCausalLM.from_pretrained` loads.

    LoRA is added into a copy of the weights, so that the folder needs no peft.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    path.mkdir(parents=True, exist_ok=True)
    model = _merged(policy.model) if policy.has_adapter else policy.model
    model.generation_config.eos_token_id = list(policy.eos_ids)
    model.generation_config.pad_token_id = policy.pad_id
    model.save_pretrained(path, safe_serialization=True)
    policy.tokenizer.save_pretrained(path)
    return path


def _pretrained(source: str, kind: torch.dtype) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ModuleNotFoundError as missing:
        raise missing_package(missing.name or "transformers", f"model {source}") from missing
    # Its bars, and its advice on the precision of quantized weights, which are converted below.
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    folder, arguments = _locate(source)
    tokenizer = AutoTokenizer.from_pretrained(folder, **arguments)
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=kind, attn_implementation="sdpa", output_loading_info=True, **arguments
        )
    except (OSError, ValueError, RuntimeError) as fault:
        raise UsageError(f"the model could not be loaded: {fault}", place=source) from fault
    model, report = loaded
    _refuse_gaps(source, model, report)
    if "gguf_file" in arguments:
        _forget_quantization(model)
    return model, tokenizer


def _locate(source: str) -> tuple[str, dict[str, Any]]:
    """What `from_pretrained` is given: a folder or a hub id, and further arguments."""
    from operant.engines.language.policy.fetch import MODELS, fetched

    path = Path(source).expanduser()
    if source in MODELS:
        found = fetched(source)
        if found is None:
            raise UsageError(f"model {source} is not on this machine", remedy=f"operant models fetch {source}")
        path = found
    if path.is_file() and path.suffix == ".gguf":
        _require_gguf(source)
        return str(path.parent), {"gguf_file": path.name}
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError("the folder has no config.json, so it is no Hugging Face model", place=str(path))
        return str(path), {"local_files_only": True}
    return source, {"local_files_only": _in_cache(source)}


def _in_cache(hub_id: str) -> bool:
    """True if the hub's cache has the model, False if it may be downloaded; anything else is refused."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = isinstance(try_to_load_from_cache(hub_id, "config.json"), str)
    except HFValidationError:
        cached = False
    if cached:
        return True
    if os.environ.get("OPERANT_DOWNLOAD") == "1":
        return False
    raise UsageError(
        f"there is no model {hub_id!r}: it is no folder, no GGUF file, and not in the hub's cache",
        remedy="operant models fetch NAME    (operant models lists them; OPERANT_DOWNLOAD=1 lets the hub be asked)",
    )


def _require_gguf(source: str) -> None:
    import importlib.util

    if importlib.util.find_spec("gguf") is None:
        raise missing_package("gguf", f"model {source}")


def _refuse_gaps(source: str, model: PreTrainedModel, report: dict[str, Any]) -> None:
    """Weights that were left random, or left over, make a policy that nobody meant."""
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        keys = sorted(key for key in map(_key_name, report.get(kind) or ()) if not _harmless(key, tied))
        if keys:
            shown = ", ".join(keys[:4]) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")
            raise UsageError(f"the weights do not fit the model, {kind.replace('_', ' ')}: {shown}", place=source)


def _key_name(key: object) -> str:
    return str(key[0]) if isinstance(key, tuple) else str(key)


def _harmless(key: str, tied: Iterable[str]) -> bool:
    return key in tied or key.endswith(EXPECTED_ABSENT)


def _end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokens that end a text: those of the generation configuration, and the tokenizer's own.

    A chat model ends its turn with `<|im_end|>`, which tokenizers converted from GGUF do not say.
    """
    if _ends_turns(tokenizer):
        tokenizer.eos_token = CHAT_END
        model.generation_config.eos_token_id = tokenizer.eos_token_id
    listed = model.generation_config.eos_token_id
    ids = set(listed if isinstance(listed, list) else [] if listed is None else [listed])
    if tokenizer.eos_token_id is not None:
        ids.add(tokenizer.eos_token_id)
    if not ids:
        raise UsageError("the model has no end-of-text token, so no completion would end")
    return tuple(sorted(int(token) for token in ids))


def _ends_turns(tokenizer: PreTrainedTokenizerBase) -> bool:
    template = getattr(tokenizer, "chat_template", None)
    return CHAT_END in (json.dumps(template) if template else "") and CHAT_END in tokenizer.get_vocab()


def _begin_id(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The token that texts begin with: where the tokenizer puts one, and for Gemma, which is lost without it."""
    begin: Any = tokenizer.bos_token_id
    if begin is None:
        return None
    said = begin in tokenizer("", add_special_tokens=True).input_ids
    return int(begin) if said or str(model.config.model_type).startswith("gemma") else None


def _forget_quantization(model: PreTrainedModel) -> None:
    """Weights from a GGUF file are plain once they are loaded, and are to be trained and written as such."""
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is not None:
        quantizer.remove_quantization_config(model)


def _choose_pad(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, eos_ids: tuple[int, ...]) -> None:
    """Rows are told apart by their lengths and never by the pad, so an end token may serve where there is none."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.convert_ids_to_tokens(eos_ids[0])
    tokenizer.padding_side = "right"
    model.config.pad_token_id = tokenizer.pad_token_id


def _disable_dropout(model: PreTrainedModel) -> None:
    """Generator and trainer are to be the same policy, so only the dropout of adapters is ever in force."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue]


def _with_adapter(model: PreTrainedModel, lora: dict[str, Any], seed: int) -> PreTrainedModel:
    import torch

    try:
        from peft import LoraConfig, get_peft_model
    except ModuleNotFoundError as missing:
        raise missing_package("peft", "agent.model.lora") from missing
    try:
        config = LoraConfig(task_type="CAUSAL_LM", **lora)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            # Adapters in the precision of the weights: others would keep every input once more, in float32.
            return get_peft_model(model, config, autocast_adapter_dtype=False)  # pyright: ignore[reportReturnType]
    except (TypeError, ValueError) as fault:
        raise UsageError(f"these LoRA settings do not fit the model: {fault}") from fault


def _merged(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of an adapted model whose plain weights hold what the adapter adds."""
    import copy

    return copy.deepcopy(model).merge_and_unload()  # pyright: ignore[reportCallIssue]
