"""Memory that `operant check` foretells beside what a device really allocates, by phase of a round.

    python -m benchmarks.language_memory --device cuda --json memory.json
    python -m benchmarks.language_memory --device cuda --model 1.7b --settings full-bf16 lora-bf16
    python -m benchmarks.language_memory --device cuda --model DIR          # the configuration of a folder is enough

Weights are random: `135m` has the shape of SmolLM2-135M and `1.7b` that of SmolLM2-1.7B. Every setting makes two rounds
of GRPO on random prompts, and the second is measured: torch's peak of allocated bytes while completions are generated,
while the log-probabilities before the first step are scored, and while gradient steps are taken.
On a CPU there is nothing to measure, and only what is foretold is printed.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from operant.engines.language.generation.build import training_sampling
from operant.engines.language.generation.generator import Prompt, Step
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.learning.learner import Learner
from operant.engines.language.memory.estimate import PARTS, MemoryEstimate, estimate_memory
from operant.engines.language.memory.model_sizes import model_sizes
from operant.engines.language.memory.plan import Round, training_plan
from operant.engines.language.policy.build import lora_arguments
from operant.engines.language.policy.model import Policy, as_policy
from operant.engines.language.policy.tiny import byte_tokenizer
from operant.engines.language.rollouts.types import Answer, Group
from operant.envs.text.task import Problem, Verdict
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.settings.language import ModelSpec
from operant.spec.settings.language_algorithms import GrpoSpec

LLAMA: dict[str, Any] = {"model_type": "llama", "vocab_size": 49_152, "max_position_embeddings": 8192}
SHAPES: dict[str, dict[str, Any]] = {
    "135m": LLAMA
    | {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "tie_word_embeddings": True,
    },
    "1.7b": LLAMA
    | {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "tie_word_embeddings": True,
    },
    "small": LLAMA
    | {
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
}


@dataclass(frozen=True)
class Setting:
    """What is trained how: prompts of `prompt` tokens, each with 8 completions of at most `new` tokens."""

    name: str
    lora: bool = False
    dtype: str = "bfloat16"
    pass_tokens: int = 16_384
    checkpointing: bool = False
    packing: bool = False
    prompts: int = 16
    prompt: int = 128
    new: int = 256
    kl: bool = False
    minibatches: int = 1
    top_p: float = 1.0


def settings() -> list[Setting]:
    """Full and LoRA training in both precisions, with and without checkpointing, and what else changes memory."""
    found = []
    for lora in (False, True):
        for short, dtype in (("bf16", "bfloat16"), ("fp32", "float32")):
            plain = Setting(f"{'lora' if lora else 'full'}-{short}", lora, dtype)
            checkpointed = replace(plain, name=f"{plain.name}-checkpointing", checkpointing=True)
            found += [plain, checkpointed, replace(plain, name=f"{plain.name}-packing", packing=True)]
    full, lora = (next(each for each in found if each.name == name) for name in ("full-bf16", "lora-bf16"))
    return [
        *found,
        replace(full, name="full-bf16-pass-4096", pass_tokens=4096),
        replace(full, name="full-bf16-long", prompts=4, prompt=512, new=1536),
        replace(full, name="full-bf16-shared-prompt", prompts=8, prompt=768, new=96),
        replace(full, name="full-bf16-checkpointing-packing", checkpointing=True, packing=True),
        replace(full, name="full-bf16-kl", kl=True),
        replace(lora, name="lora-bf16-kl", kl=True),
        replace(full, name="full-bf16-minibatches", minibatches=4),
        replace(full, name="full-bf16-top-p", top_p=0.9),
    ]


def config_of(model: str) -> Any:
    """The configuration of a named shape, or of a folder."""
    from transformers import AutoConfig, LlamaConfig

    if model in SHAPES:
        return LlamaConfig(**SHAPES[model], pad_token_id=0, eos_token_id=1, bos_token_id=None)
    return AutoConfig.from_pretrained(model)


def specs(setting: Setting) -> tuple[GrpoSpec, ModelSpec]:
    """The settings as a spec has them."""
    algorithm: dict[str, Any] = {
        "batch_size": setting.prompts * 8,
        "minibatch_size": setting.prompts * 8 // setting.minibatches,
        "pass_tokens": setting.pass_tokens,
        "packing": setting.packing,
        "top_p": setting.top_p,
    }
    algorithm |= {"kl": "k3", "kl_coef": 0.01} if setting.kl else {}
    model = {
        "dtype": setting.dtype,
        "gradient_checkpointing": setting.checkpointing,
        "lora": {} if setting.lora else None,
    }
    return GrpoSpec.model_validate(algorithm), ModelSpec.model_validate(model)


def policy_of(config: Any, model: ModelSpec, device: str) -> Policy:
    """A policy of random weights; on the meta device it has none."""
    from transformers import AutoModelForCausalLM

    with torch.device(device):
        made = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, model.dtype), attn_implementation="sdpa")
    lora = None if model.lora is None else lora_arguments(model.lora)
    return as_policy(made, byte_tokenizer(), "random", lora=lora, gradient_checkpointing=model.gradient_checkpointing)


def prompts_of(setting: Setting, vocabulary: int) -> list[tuple[int, ...]]:
    """Random prompts, no two of the same length where there are many."""
    rng = random.Random(0)
    lengths = [setting.prompt - at % 16 for at in range(setting.prompts)]
    return [tuple(rng.randrange(2, vocabulary) for _ in range(length)) for length in lengths]


def foretold(config: Any, setting: Setting, on_gpu: bool) -> MemoryEstimate:
    """What `operant check` would say."""
    algorithm, model = specs(setting)
    sizes = model_sizes(policy_of(config, model, "meta").model, getattr(torch, model.dtype), on_gpu)
    prompts = prompts_of(setting, config.vocab_size)
    round_ = Round(prompts, [setting.new] * len(prompts), algorithm.group_size)
    return estimate_memory(sizes, training_plan(sizes, algorithm, model, round_, on_gpu=on_gpu))


class Peaks:
    """The peak of each phase, by torch's count of allocated bytes."""

    def __init__(self, device: str) -> None:
        self.on_gpu = device.startswith("cuda")
        self.found: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def of(self, phase: str, work: Callable[[], Any]) -> Any:
        """Do the work of a phase, and note its peak and time; the peak of one around another is that after it."""
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        begun = time.perf_counter()
        done = work()
        if self.on_gpu:
            torch.cuda.synchronize()
            self.found[phase] = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        self.seconds[phase] = time.perf_counter() - begun
        return done


def measured(config: Any, setting: Setting, device: str) -> Peaks:
    """Two rounds, the second of which is measured."""
    algorithm, model = specs(setting)
    policy = policy_of(config, model, device)
    learner = Learner(policy, algorithm, model, Seeds(0))
    learner.snapshot_reference()
    generator = TorchGenerator(policy, slots=model.slots)
    prompts = [Prompt(tokens, setting.new) for tokens in prompts_of(setting, config.vocab_size)]
    peaks, prepare = Peaks(device), learner._prepare
    learner._prepare = lambda *args: peaks.of("scoring", lambda: prepare(*args))  # pyright: ignore[reportAttributeAccessIssue]
    for round_ in range(2):
        sampling = training_sampling(algorithm, round_, None)
        written = peaks.of("generation", lambda drawn=sampling: generator.generate(prompts, drawn))
        groups = [as_group(prompt, answers) for prompt, answers in zip(prompts, written, strict=True)]
        at = Progress(round_ * algorithm.batch_size, round_ * setting.minibatches)
        peaks.of("training", lambda given=groups, now=at: learner.learn(given, now, 10**9))
        generator.load({}, round_ + 1)
    if not (algorithm.kl != "none" or setting.minibatches > 1):
        peaks.found.pop("scoring", None)
    return peaks


def as_group(prompt: Prompt, completions: list[Any]) -> Group:
    """Completions of a prompt, every other one rewarded."""
    problem = Problem("random/train/0", "random", "", None)
    answers = [
        Answer((Step(prompt.tokens, each),), Verdict(float(at % 2), "right" if at % 2 else "wrong"), float(at % 2))
        for at, each in enumerate(completions)
    ]
    return Group(problem, prompt, tuple(answers))


def show(setting: Setting, estimate: MemoryEstimate, peaks: Peaks | None) -> dict[str, Any]:
    """Print what was foretold beside what was measured; returns it as plain data."""
    row: dict[str, Any] = {**vars(setting), "predicted": estimate.phases, "measured": {}, "ratio": {}, "seconds": {}}
    print(setting.name, flush=True)
    for phase, parts in estimate.phases.items():
        told = ", ".join(f"{part} {parts[part] / 2**20:,.0f}" for part in PARTS if parts[part])
        line = f"  {phase:<10} predicted {estimate.total(phase) / 2**20:>9,.0f} MiB"
        if peaks is not None and phase in peaks.found:
            row["measured"][phase] = peaks.found[phase]
            row["ratio"][phase] = estimate.total(phase) / peaks.found[phase]
            line += f"  measured {peaks.found[phase] / 2**20:>9,.0f} MiB  ratio {row['ratio'][phase]:.3f}"
        print(f"{line}  ({told})", flush=True)
    if peaks is not None and peaks.found:
        most = max(peaks.found.values())
        row |= {"peak_measured": most, "peak_ratio": estimate.peak / most, "seconds": peaks.seconds}
        print(f"  peak       predicted {estimate.peak / 2**20:>9,.0f} MiB  measured {most / 2**20:>9,.0f} MiB", end="")
        print(f"  ratio {estimate.peak / most:.3f}  ({', '.join(f'{k} {v:.2f} s' for k, v in peaks.seconds.items())})")
    return row


def main() -> None:
    """One setting after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="135m", help="135m, 1.7b, small, or a folder with a config.json")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--settings", nargs="*", help="only these; all by default")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    options = parser.parse_args()
    config, rows = config_of(options.model), []
    torch.backends.cuda.matmul.allow_tf32 = True
    for setting in settings():
        if options.settings and setting.name not in options.settings:
            continue
        estimate = foretold(config, setting, options.device != "cpu")
        peaks = measured(config, setting, options.device)
        rows.append({"model": options.model, "device": options.device, **show(setting, estimate, peaks)})
        gc.collect()
        if options.device.startswith("cuda"):
            torch._C._cuda_clearCublasWorkspaces()  # those of streams that no setting uses any more
            torch.cuda.empty_cache()
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
