"""GRPO beside TRL's GRPOTrainer with its own generation: same model, prompts, group size and lengths, in one run.

    python -m benchmarks.versus_trl --python PYTHON_WITH_TRL                    # tiny, on this CPU, one thread
    python -m benchmarks.versus_trl --python PYTHON_WITH_TRL --layers 2 --width 128 --prompts 16 --new 6    # grpo_tiny
    python -m benchmarks.versus_trl --model DIR --device cuda --prompts 64 --group 8 --new 128

Completion tokens per second of whole training steps (generate, reward, update), the median over steps after the
first; the two sides take turns, so that a busy machine is busy for both. On a CPU with one thread seconds are those
that the process had the processor, which a busy machine does not stretch. Every completion is written to its full
length on both sides. The task is to copy letters; the reward is the share of them in place.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

LETTERS = 5


def words(count: int, seed: int = 1) -> list[str]:
    """The words to copy."""
    rng = random.Random(seed)
    return ["".join(rng.choice("abcdefgh") for _ in range(LETTERS)) for _ in range(count)]


def asked(word: str) -> str:
    """The prompt."""
    return f"copy:{word}="


def worth(word: str, said: str) -> float:
    """The share of the letters in place."""
    return sum(a == b for a, b in zip(said.strip(), word, strict=False)) / len(word)


def prepare(options: argparse.Namespace) -> None:
    """Threads, and no word to any hub."""
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS=str(options.threads))
    import torch

    torch.set_num_threads(options.threads)


def now(options: argparse.Namespace) -> float:
    """The clock, or on one thread the processor's."""
    return time.process_time() if options.device == "cpu" and options.threads == 1 else time.perf_counter()


def trl_side(options: argparse.Namespace) -> dict[str, Any]:
    """Steps of TRL's trainer."""
    prepare(options)
    import builtins
    import contextlib

    import pyarrow  # pyright: ignore[reportMissingImports]
    import torch
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    # datasets hashes what it maps by pickling it, and pyarrow's type says that it lives here.
    builtins.MonthDayNano = pyarrow.MonthDayNano  # pyright: ignore[reportAttributeAccessIssue]
    rows = [{"prompt": asked(word), "word": word} for word in words(options.prompts * (options.steps + 1))]
    on_gpu = options.device == "cuda"
    batch = options.prompts * options.group
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=not on_gpu,
        bf16=options.dtype == "bfloat16",
        per_device_train_batch_size=batch // options.passes,
        gradient_accumulation_steps=options.passes,
        num_generations=options.group,
        max_completion_length=options.new,
        learning_rate=1e-5,
        max_steps=options.steps,
        temperature=1.0,
        beta=0.0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        gradient_checkpointing=False,
        disable_tqdm=True,
        generation_kwargs={"min_new_tokens": options.new},
    )
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=getattr(torch, options.dtype))
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    stamps: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *given: Any, **named: Any) -> None:
            if on_gpu:
                torch.cuda.synchronize()
            stamps.append(now(options))

    def reward(completions: list[str], word: list[str], **_: Any) -> list[float]:
        return [worth(one, said) for one, said in zip(word, completions, strict=True)]

    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        callbacks=[Clock()],
    )
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()
    return {"seconds": [b - a for a, b in pairwise(stamps)]}


def our_side(options: argparse.Namespace) -> dict[str, Any]:
    """Steps of Operant's engine, by parts, in the environment that its sessions are started with."""
    from operant.launch.budget import library_environment

    os.environ.update(library_environment(options.threads))
    prepare(options)
    from dataclasses import replace

    import torch

    from operant.engines.language.build import build_context, share_activations
    from operant.engines.language.generation.torch_generator import TorchGenerator
    from operant.engines.language.policy.build import prepare_torch
    from operant.envs.text.letters import Copy
    from operant.run.progress import Progress
    from operant.run.seeding import Seeds
    from operant.spec.schema import Spec

    on_gpu = options.device == "cuda"
    algorithm = {
        "name": "grpo",
        "group_size": options.group,
        "batch_size": options.prompts * options.group,
        "zero_variance": "keep",
        "pass_tokens": options.pass_tokens,
        "mismatch_limit": None,
    }
    model = {
        "source": options.model,
        "dtype": options.dtype,
        "template": "raw",
        "slots": 4096,
        "optimizer": {"lr": 1e-5},
    }
    text = {"arguments": {"style": "bare", "letters": LETTERS}, "max_tokens": options.new}
    spec = Spec.model_validate(
        {
            "env": {"name": "copy", "max_frame": 10**9, "text": text},
            "agent": {"algorithm": algorithm, "model": model},
            "meta": {"device": options.device},
        }
    )
    prepare_torch(spec, options.threads)
    seconds: list[float] = []
    parts: list[dict[str, float]] = []
    with build_context(spec, Seeds(0)) as context:
        context.learner.computes_all = True  # completions without a gradient too, as the other side does
        # Nothing ends early, as on the other side: neither by a token nor by the task's line end.
        Copy.BARE_STOP = ()
        endless = replace(context.policy, eos_ids=(-1,))
        context.worker.policy = endless
        context.worker.generator = TorchGenerator(endless, slots=4096)
        share_activations(context.worker.generator, context.learner)
        for _ in range(options.steps):
            begun = now(options)
            groups = context.gather()
            between = now(options)
            at = Progress(context.tracker.frames, context.tracker.updates)
            context.tracker.updates += context.learner.learn(groups, at, spec.env.max_frame).steps
            context.worker.generator.load({}, context.tracker.updates)
            if on_gpu:
                torch.cuda.synchronize()
            seconds.append(now(options) - begun)
            parts.append({"generate and verify": between - begun, "train": now(options) - between})
    names = parts[-1]
    return {"seconds": seconds[1:], "parts": {name: statistics.median(p[name] for p in parts[1:]) for name in names}}


def call(python: str, side: str, rest: list[str]) -> dict[str, Any]:
    """Run a side in a process of its own."""
    command = [python, "-m", "benchmarks.versus_trl", "--side", side, *rest]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def tiny_folder(layers: int, width: int) -> str:
    """The model `tiny` as a folder that both sides load."""
    from operant.engines.language.policy.model import load_policy, write_folder
    from operant.engines.language.policy.tiny import TinySizes

    policy = load_policy("tiny", seed=1, tiny=TinySizes(layers, width))
    return str(write_folder(policy, Path(tempfile.mkdtemp()) / "tiny"))


def main() -> None:
    """Both sides in turns, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=("trl", "ours"))
    parser.add_argument("--python", default=sys.executable, help="interpreter that has trl")
    parser.add_argument("--model", help="a Hugging Face folder; the tiny model by default")
    parser.add_argument("--layers", type=int, default=4, help="of the tiny model")
    parser.add_argument("--width", type=int, default=256, help="of the tiny model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="default: bfloat16 on a GPU")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--new", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--passes", type=int, default=1, help="micro-batches of a step on TRL's side")
    parser.add_argument("--pass-tokens", type=int, default=131_072, help="tokens of a micro-batch on our side")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    options.dtype = options.dtype or ("bfloat16" if options.device == "cuda" else "float32")
    if options.side:
        print(json.dumps((trl_side if options.side == "trl" else our_side)(options)))
        return
    options.model = options.model or tiny_folder(options.layers, options.width)
    given = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in vars(options).items()
        if name not in ("side", "python", "turns")
    ]
    tokens = options.prompts * options.group * options.new
    rates: dict[str, list[float]] = {"trl": [], "ours": []}
    for _ in range(options.turns):
        for side, python in (("trl", options.python), ("ours", sys.executable)):
            found = call(python, side, given)
            rates[side].append(tokens / statistics.median(found["seconds"]))
            print(f"{side}: {rates[side][-1]:,.0f} completion tokens/s", found.get("parts", ""), flush=True)
    print(f"ratio {statistics.median(rates['ours']) / statistics.median(rates['trl']):.2f}")


if __name__ == "__main__":
    main()
