"""A trained policy of HackMatrix on fixed seeds, beside uniformly random play: return, highest stage, victories.

    python -m benchmarks.hackmatrix_played runs/ppo_hackmatrix_gpu/STAMP/trial_000/session_0/checkpoints/FRAMES

One JSON object: for the greedy policy and for random legal play the means with 95 % intervals over episodes, and how
many episodes reached which stage at most. The seeds are those of the run's final evaluation, by default 1,000 of them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from operant.engines.jax.episodes import FinishedEpisode
from operant.engines.jax.evaluation import Evaluator, load_policy
from operant.engines.jax.learner import GREEDY, RANDOM
from operant.engines.jax.platform import compiler_options
from operant.report.episode_metrics import over_episodes
from operant.report.stats import episode_interval
from operant.run.run import Run
from operant.spec.schema import Spec


def told(played: list[FinishedEpisode]) -> dict[str, Any]:
    """What came of the episodes."""
    stages = Counter(int(over.parts["stage"]) for over in played)
    return {
        "return": episode_interval([over.score for over in played]).as_dict(),
        "length": episode_interval([over.length for over in played]).as_dict(),
        **{name: part.as_dict() for name, part in over_episodes(over.parts for over in played).items()},
        "episodes_by_stage": {stage: stages[stage] for stage in sorted(stages)},
    }


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--episodes", type=int, default=1000)
    options = parser.parse_args()
    spec = Spec.model_validate(Run.open(options.checkpoint.parent.parent).spec)
    learner, policy = load_policy(spec, options.checkpoint)
    evaluator = Evaluator(learner, options.episodes, compiler_options())
    first = spec.meta.eval_seed
    modes = {"greedy": GREEDY, "random": RANDOM}
    found = {
        name: told(list(evaluator.single(policy, learner.hyper(spec), first, options.episodes, mode)))
        for name, mode in modes.items()
    }
    print(json.dumps({"frames": int(options.checkpoint.name), "first_seed": first, **found}, indent=2))


if __name__ == "__main__":
    main()
