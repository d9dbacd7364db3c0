"""The built-in generator and the passes of a training step against transformers alone, in seconds, alternating.

    python -m benchmarks.generate                          # the tiny model: 8 prompts of 12 tokens, 8 x 16 tokens each
    python -m benchmarks.generate --new 64 --group 16
    python -m benchmarks.generate --device cuda --layers 30 --width 576 --heads 9 --prompts 64 --new 128 --no-writing

Prints completion tokens per second of `TorchGenerator` and of `model.generate`, seconds of log-probabilities
and their gradients with and without shared prompts and by the model's own logits, and the ratios. Seconds are those
of the processor, on a GPU (where weights are bfloat16) those of the clock. Every completion is written to its full
length on both sides.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.model import Policy, load_policy
from operant.engines.language.policy.shared_prompts import enable_shared_prompts
from operant.engines.language.policy.tiny import TinySizes

REPEATS = 7


def now() -> float:
    """The processor's time, or where there is a GPU the clock's once it is done."""
    if not torch.cuda.is_available():
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def alternating(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each way, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS + 1):
        for name, way in ways.items():
            start = now()
            way()
            seconds[name].append(now() - start)
    return {name: statistics.median(each[1:]) for name, each in seconds.items()}


def writing(policy: Policy, prompts: list[Prompt], group: int) -> dict[str, float]:
    """Seconds to write all completions, by us and by transformers."""
    endless = replace(policy, eos_ids=(-1,))
    generator = TorchGenerator(endless)
    device = next(policy.model.parameters()).device
    given = torch.tensor([prompt.tokens for prompt in prompts for _ in range(group)], device=device)
    new = prompts[0].max_tokens

    def theirs() -> None:
        mask = torch.ones_like(given)
        policy.model.generate(  # pyright: ignore[reportCallIssue]
            given, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=new, min_new_tokens=new
        )

    return alternating({"ours": lambda: generator.generate(prompts, Sampling(n=group, seed=1)), "theirs": theirs})


def learning(policy: Policy, samples: list[Sample]) -> dict[str, float]:
    """Seconds for log-probabilities and gradients of all samples."""
    model, start = policy.model, len(samples[0].prompt)
    enable_shared_prompts(model)
    device = next(model.parameters()).device
    whole = torch.tensor([sample.prompt + sample.completion for sample in samples], device=device)

    def packed(share: bool) -> None:
        for batch in micro_batches(samples, 1 << 16, share_from=0.0 if share else None):
            token_logprobs(model, batch.to(device)).logprobs.sum().backward()

    def full() -> None:
        logits = model(whole, attention_mask=torch.ones_like(whole)).logits[:, start - 1 : -1]
        torch.log_softmax(logits, -1).gather(2, whole[:, start:, None]).sum().backward()

    return alternating({"shared": lambda: packed(True), "apart": lambda: packed(False), "theirs": full})


def main() -> None:
    """One JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"layers": 4, "width": 256, "heads": 4}
    for name, value in {"prompts": 8, "group": 8, "length": 12, "new": 16, "threads": 1, **sizes}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--no-writing", action="store_true", help="the passes of a training step alone")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    tiny = TinySizes(asked.layers, asked.width, asked.heads, context=asked.length + asked.new)
    dtype = "float32" if asked.device == "cpu" else "bfloat16"
    policy, draw = load_policy("tiny", seed=1, tiny=tiny, device=asked.device, dtype=dtype), random.Random(1)

    def letters(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, 258) for _ in range(count))

    prompts = [Prompt(letters(asked.length), asked.new) for _ in range(asked.prompts)]
    samples = [Sample(prompt.tokens, letters(asked.new)) for prompt in prompts for _ in range(asked.group)]
    tokens = len(samples) * asked.new
    row: dict[str, object] = {}
    if not asked.no_writing:
        wrote = writing(policy, prompts, asked.group)
        row["generate_tokens_per_second"] = {name: round(tokens / each) for name, each in wrote.items()}
        row["generate_ratio"] = round(wrote["theirs"] / wrote["ours"], 2)
    learnt = learning(policy, samples)
    row["learn_seconds"] = {name: round(each, 4) for name, each in learnt.items()}
    row["learn_ratio"] = round(learnt["theirs"] / learnt["shared"], 2)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
