"""What is typed as an option and is a setting of the spec, and keys that stand in the wrong place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Operant


@pytest.mark.parametrize("typed", [("--lr", "1e-3"), ("--lr=1e-3",)])
def test_a_setting_typed_as_an_option_is_answered_with_its_path(operant: Operant, typed: tuple[str, ...]) -> None:
    refused = operant("train", "ppo_cartpole", *typed)
    assert refused.code == 2
    assert "try: operant train ppo_cartpole -s agent.net.optimizer.lr=1e-3\n" in refused.err
    assert "--root" not in refused.err


def test_an_option_of_no_meaning_is_not_answered_with_an_unrelated_one(operant: Operant) -> None:
    refused = operant("train", "ppo_cartpole", "--zz", "1")
    assert refused.code == 2
    assert "did you mean" not in refused.err


def test_a_key_that_stands_elsewhere_gets_the_keys_of_its_place(operant: Operant) -> None:
    refused = operant("check", "ppo_cartpole", "--no-estimate", "-s", "agent.net.name=x")
    assert refused.code == 2
    assert "did you mean name?" not in refused.err
    assert "it has type, hidden" in refused.err


def test_a_root_that_cannot_hold_runs_is_the_users_to_change(operant: Operant, here: Path) -> None:
    (here / "file").write_text("")
    for root in ("/proc", "file", "/proc/1"):
        refused = operant("train", "ppo_cartpole", "--root", root)
        assert refused.code == 2, refused.err
        assert "nothing can be written there" in refused.err
        assert "defect" not in refused.err
