"""Does the built-in generator agree with the trainer on this device, and how fast is it?

    python -m benchmarks.language_device                                     # tiny, on whatever device torch finds
    python -m benchmarks.language_device --model DIR --dtype bfloat16 --prompts 64 --group 8 --new 128

Prints, for each round: tokens per second of generation, seconds of an update, and the divergence between the
generator's log-probabilities and the trainer's, in nats per token.
"""

from __future__ import annotations

import argparse
import time

import torch

from operant.engines.language.build import build_context
from operant.engines.language.policy.build import prepare_torch
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from operant.spec.schema import Spec


def spec_of(options: argparse.Namespace) -> Spec:
    """GRPO on a generated task."""
    algorithm = {
        "name": "grpo",
        "group_size": options.group,
        "batch_size": options.prompts * options.group,
        "zero_variance": "keep",
        "pass_tokens": options.pass_tokens,
        "mismatch_limit": None,
    }
    model = {"source": options.model, "dtype": options.dtype, "slots": options.slots, "optimizer": {"lr": 1e-6}}
    style = "bare" if options.model == "tiny" else "words"
    text = {"arguments": {"style": style}, "max_tokens": options.new}
    return Spec.model_validate(
        {
            "env": {"name": options.task, "max_frame": 10**9, "text": text},
            "agent": {"algorithm": algorithm, "model": model},
            "meta": {"device": "auto"},
        }
    )


def waited() -> float:
    """The time, when the device has done what it was asked to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Rounds, one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--task", default="largest")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--slots", type=int, default=1024)
    parser.add_argument("--pass-tokens", type=int, default=65_536)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    spec = spec_of(options)
    prepare_torch(spec, 4)
    with build_context(spec, Seeds(0)) as context:
        context.learner.computes_all = True  # completions without a gradient too
        for _ in range(options.rounds):
            begun, tokens = waited(), context.tracker.tokens
            groups = context.gather()
            middle = waited()
            at = Progress(context.tracker.frames, context.tracker.updates)
            report = context.learner.learn(groups, at, spec.env.max_frame)
            context.tracker.updates += report.steps
            context.worker.generator.load({}, context.tracker.updates)
            ended = waited()
            written = context.tracker.tokens - tokens
            print(
                f"{written:,} tokens at {written / (middle - begun):,.0f}/s, update {ended - middle:.3f} s, "
                f"mismatch {report.means['mismatch/kl']:.2e}, ratio {report.means['policy/ratio']:.6f}, "
                f"{groups[0].answers[0].completion.text!r:.60}",
                flush=True,
            )


if __name__ == "__main__":
    main()
