from __future__ import annotations

from typing import Any

from operant.report.code_changes import changed_lines
from operant.report.differences import Rank, differences
from operant.report.origin import Origin

SPEC = {"name": "x", "env": {"name": "CartPole-v1"}, "agent": {"algorithm": {"gamma": 0.9}}, "meta": {"threads": 1}}


def provenance(**changes: Any) -> dict[str, Any]:
    facts = {
        "packages": {"attrs": "1", "gymnasium": "1", "torch": "2"},
        "python": {"version": "3.11"},
        "hardware": {"cpu": "A", "gpus": []},
        "arithmetic": {"numpy": {"blas": "openblas"}, "torch": {"instructions": "AVX2", "threads": 1}},
        "environment": {"LANG": "C", "OMP_NUM_THREADS": "1", "HOME": "<redacted>"},
        "git": [{"of": "operant", "sha": "a" * 40, "dirty": False}],
    }
    return {**facts, **changes}


def found(a: Origin, b: Origin) -> list[tuple[Rank, str, str, str]]:
    return [(each.rank, each.name, each.a, each.b) for each in differences(a, b)]


def test_the_same_origin_has_no_differences() -> None:
    origin = Origin("a", SPEC, (0,), provenance())
    assert found(origin, Origin("b", SPEC, (0,), provenance())) == []


def test_what_touches_learning_comes_before_packages_and_cosmetics() -> None:
    other = {
        "name": "y",
        "env": {"name": "CartPole-v1"},
        "agent": {"algorithm": {"gamma": 0.5}},
        "meta": {"threads": 2, "track": [{"name": "wandb"}]},
    }
    changed = provenance(
        packages={"attrs": "2", "gymnasium": "1", "torch": "3"},
        hardware={"cpu": "B", "gpus": []},
        environment={"LANG": "D", "OMP_NUM_THREADS": "2", "HOME": "<redacted>"},
        arithmetic={"torch": {"instructions": "AVX512", "threads": 1}},
    )
    a = Origin("a", SPEC, (0, 1), provenance())
    assert found(a, Origin("b", other, (5, 6), changed)) == [
        (Rank.LEARNING, "agent.algorithm.gamma", "0.9", "0.5"),
        (Rank.SEED, "seed", "0, 1", "5, 6"),
        (Rank.PACKAGE, "torch", "2", "3"),
        (Rank.ARITHMETIC, "OMP_NUM_THREADS", "1", "2"),
        (Rank.ARITHMETIC, "meta.threads", "1", "2"),
        (Rank.ARITHMETIC, "torch.instructions", "AVX2", "AVX512"),
        (Rank.HARDWARE, "cpu", "A", "B"),
        (Rank.OTHER_PACKAGE, "attrs", "1", "2"),
        (Rank.COSMETIC, "meta.track", "not there", '[{"name": "wandb"}]'),
        (Rank.COSMETIC, "name", "x", "y"),
        (Rank.ENVIRONMENT, "LANG", "C", "D"),
    ]


def test_files_say_whether_code_differs_and_a_commit_alone_does_not() -> None:
    moved = provenance(git=[{"of": "operant", "sha": "b" * 40, "dirty": False}])
    source = {"engines/torch/ppo.py": "1" * 16, "cli/app.py": "1" * 16}

    def ranks(other: dict[str, str]) -> list[tuple[Rank, str]]:
        a = Origin("a", SPEC, (0,), provenance(), source=source)
        return [(each.rank, each.name) for each in differences(a, Origin("b", SPEC, (0,), moved, source=other))]

    assert ranks(source) == [(Rank.COSMETIC, "commit (operant)")]
    assert ranks({**source, "cli/app.py": "2" * 16})[-1] == (Rank.COSMETIC, "operant/cli/app.py")
    assert ranks({**source, "engines/torch/ppo.py": "2" * 16})[0] == (Rank.CODE, "operant/engines/torch/ppo.py")
    assert ranks({}) == [(Rank.CODE, "commit (operant)")], "without hashes a commit is all that is known"


def test_changed_lines_have_their_numbers_and_an_end() -> None:
    assert changed_lines("a\nb\nc\n", "a\nB\nc\nd\n") == ("2 - b", "2 + B", "4 + d")
    assert changed_lines("", "\n".join(map(str, range(20))))[-1] == "and 8 lines more"
