"""What a spec is about to do, in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from operant.cli.output import document, plural, say
from operant.errors import EXIT_DONE

if TYPE_CHECKING:
    from operant.spec.dialects.hackmatrix import Flags
    from operant.spec.load import Loaded
    from operant.spec.schema import Spec


def summary_line(spec: Spec) -> str:
    """ppo_cartpole: ppo on CartPole-v1, 4 sessions (seeds 0 to 3) of 50,000 frames"""
    last = spec.meta.seed + spec.meta.max_session - 1
    seeds = f"seed {last}" if spec.meta.max_session == 1 else f"seeds {spec.meta.seed} to {last}"
    return (
        f"{spec.name}: {spec.agent.algorithm.name} on {spec.env.name}, "
        f"{plural(spec.meta.max_session, 'session')} ({seeds}) of {spec.env.max_frame:,} frames"
    )


def translation_lines(loaded: Loaded) -> list[str]:
    """Which keys of another lab's spec were changed or left out; nothing for a native spec."""
    if not loaded.translated:
        return []
    keys = list(dict.fromkeys(remark.key for remark in loaded.remarks if remark.key))  # some are of the whole file
    said = f"; {plural(len(keys), 'key')} changed or left out: {', '.join(keys)}" if keys else ""
    return [f"{loaded.lab}{said}", f"  why:      operant convert {loaded.path} {loaded.spec.name}"]


def show_evaluation(target: str, as_json: bool) -> int | None:
    """Print the commands that another lab's file of benchmarks comes to; None where the file is none."""
    from operant.spec.dialects.rlvr_eval import evaluation_in

    found = evaluation_in(target)
    if found is None:
        return None
    if as_json:
        remarks = [str(each) for each in found.remarks]
        document({"commands": list(found.commands), "remarks": remarks, "exit": EXIT_DONE})
    else:
        say(f"an evaluation of rlvr-experiments, {plural(len(found.commands), 'command')}:")
        say(*(f"  {line}" for line in found.commands), *(f"# {each}" for each in found.remarks))
    return EXIT_DONE


def asked_by_flags(flags: str | None, target: str, name: str | None, overrides: Sequence[str]) -> Flags:
    """What the flags of another trainer ask for, of the spec as it is without them."""
    from operant.spec.dialects.hackmatrix import Flags, read_flags
    from operant.spec.load import load

    return Flags([], []) if flags is None else read_flags(flags, load(target, name, overrides).spec)
