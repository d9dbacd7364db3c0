"""A real vLLM beside the trainer, in this process: compares the two, trains, and writes what it saw as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from operant.engines.language.build import TrainingContext, build_context
from operant.engines.language.generation.generator import Completion, Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.generation.vllm_generator import VllmGenerator
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.telemetry.telemetry import Telemetry
from operant.run.progress import Progress
from operant.run.seeding import Seeds
from tests.unit.engines.language.conftest import graded, spec_of

PROMPTS = [Prompt((10, 20, 30), 12), Prompt((40,) * 7, 20), Prompt((50, 60), 9)]
MODEL: dict[str, Any] = {"generator": "vllm", "tiny": {"layers": 2, "width": 64, "heads": 2, "context": 64}}
SPEC = spec_of(**MODEL)
CUT = Sampling(8, 0.7, 0.8, 20, seed=5, min_p=0.02, keep_mask=True)
WAYS = {"greedy": Sampling(1, 0.0), "plain": Sampling(8, seed=5), "cut": CUT}
TRUNCATED = {"top_p": 0.9, "top_k": 20, "min_p": 0.02, "temperature": 0.8, "zero_variance": "keep"}


def logprob_error(context: TrainingContext, sampling: Sampling) -> float:
    """The largest difference between the generator's log-probabilities and the trainer's."""
    worst = 0.0
    for prompt, row in zip(PROMPTS, context.worker.generator.generate(PROMPTS, sampling), strict=True):
        for made in row:
            batch = micro_batches([Sample(prompt.tokens, made.tokens)], 1000, pad_id=0)[0]
            mask = None if made.mask is None else torch.from_numpy(made.mask.packed().copy())
            assert (mask is not None) == sampling.truncates
            truth = token_logprobs(context.policy.model, batch, sampling.temperature, mask=mask).logprobs
            worst = max(worst, float((truth - torch.tensor(made.logprobs)).abs().max()))
    return worst


def same(one: list[list[Completion]], other: list[list[Completion]]) -> bool:
    """Whether tokens, texts and ends are equal."""
    flat = [[(each.tokens, each.text, each.finish) for row in rows for each in row] for rows in (one, other)]
    return flat[0] == flat[1]


def greedy(context: TrainingContext) -> bool:
    """Whether vLLM's likeliest completions are the built-in generator's, those that a text stops among them."""
    free = TorchGenerator(context.policy).generate(PROMPTS, Sampling(temperature=0.0))
    stopping = [Prompt(PROMPTS[0].tokens, 12, (free[0][0].text[2:4],)), *PROMPTS]
    made = context.worker.generator.generate(stopping, Sampling(temperature=0.0))
    return same(made, TorchGenerator(context.policy).generate(stopping, Sampling(temperature=0.0)))


def ends(context: TrainingContext) -> list[str]:
    """How completions end whose next token is forced to be the end of text, or completes a stop string."""
    free = context.worker.generator.generate(PROMPTS[:1], Sampling(temperature=0.0))[0][0]
    stopping = Prompt(PROMPTS[0].tokens, 12, (free.text[2:4],))
    stopped = context.worker.generator.generate([stopping], Sampling(temperature=0.0))[0][0]
    ended = next(
        made
        for seed in range(1000)
        for row in context.worker.generator.generate(PROMPTS, Sampling(64, seed=seed))
        for made in row
        if made.tokens[-1] in context.policy.eos_ids
    )
    return [stopped.finish, ended.finish]


def train(context: TrainingContext, rounds: int) -> list[float]:
    """Rounds of learning, and how far generator and trainer were apart in each."""
    found = []
    for _ in range(rounds):
        at = Progress(context.tracker.frames, context.tracker.updates)
        report = context.learner.learn(graded(context.gather()), at, 1000)
        context.tracker.updates += report.steps
        found.append(report.means["mismatch/kl"])
        context.worker.generator.load({}, context.tracker.updates)
    return found


@torch.no_grad()
def disturb(context: TrainingContext, size: float) -> None:
    """Change the trainer's weights without telling the generator."""
    for weight in context.policy.model.parameters():
        weight += size * torch.randn_like(weight)


def trial() -> dict[str, Any]:
    """Everything that the test looks at."""
    with build_context(SPEC, Seeds(3)) as context:
        generator = context.worker.generator
        assert isinstance(generator, VllmGenerator)
        disturb(context, 0.1)
        stale = generator.gap()
        generator.load({}, 0)
        seen: dict[str, Any] = {"stale_gap": stale, "fresh_gap": generator.gap(), "greedy_equal": greedy(context)}
        seen["logprob_error"] = {name: logprob_error(context, way) for name, way in WAYS.items()}
        both = [generator.generate(PROMPTS, WAYS["plain"]) for _ in range(2)]
        seen |= {"repeatable": same(*both), "stops": ends(context), "mismatch": train(context, 4)}
        seen |= {"updates": context.tracker.updates, "greedy_after": greedy(context)}
        disturb(context, 0.1)
        seen["stale_mismatch"] = train(context, 1)[0]
        return seen


def second_gap() -> float:
    """How far a second engine of this process, begun after the first was closed, is from its trainer."""
    with build_context(SPEC, Seeds(4)) as context:
        generator = context.worker.generator
        assert isinstance(generator, VllmGenerator)
        disturb(context, 0.1)
        generator.load({}, 1)
        return generator.gap()


def truncated() -> dict[str, Any]:
    """A first step with truncated sampling, and the hand-overs of weights around it."""
    spec = spec_of(TRUNCATED, **MODEL)
    with build_context(spec, Seeds(5), telemetry=Telemetry()) as context:
        probes = [*context.publish().values()]
        means = context.learner.learn(graded(context.gather()), Progress(), 1000).means
        context.tracker.updates += 1
        probes += context.publish().values()
        return {"ratio": means["policy/ratio"], "cut_mismatch": means["mismatch/kl"], "probes": probes}


if __name__ == "__main__":
    seen = {**trial(), "second_gap": second_gap(), **truncated()}
    Path(sys.argv[1], "seen.json").write_text(json.dumps(seen, indent=1))
