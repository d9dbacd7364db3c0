"""Files of rlvr-experiments: SFT, teachers, budgets, keys given twice, losses without names, evaluations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from operant.errors import SpecError
from operant.spec.dialects.rlvr_eval import evaluation_in
from operant.spec.load import Loaded, load

SAMPLE = (Path(__file__).parent / "files" / "rlvr_gsm8k.yaml").read_text()
TEACHER = "\n  - {name: teacher, kind: vllm, config: {model: models/chat-1b}}\nsync:"


def translated(folder: Path, *changes: tuple[str, str], settings: tuple[str, ...] = ()) -> Loaded:
    """The sample with pieces of its text replaced, each of which it has."""
    text = SAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "file.yaml"
    path.write_text(text)
    return load(str(path), overrides=settings)


def algorithm(loaded: Loaded) -> dict[str, Any]:
    return loaded.spec.agent.algorithm.model_dump()


def told(loaded: Loaded, key: str) -> str:
    return " | ".join(each.text for each in loaded.remarks if each.key == key)


def test_sft_beside_rewards(tmp_path: Path) -> None:
    data = "sft_data: {dataset: sft_jsonl, path: data/hard.jsonl, subset: gsm8k}\nbuffer:"
    loaded = translated(tmp_path, ("alpha_sft: 0.0", "alpha_sft: 0.25"), ("buffer:", data))
    found = algorithm(loaded)
    assert (found["sft_coef"], found["sft_batch_size"]) == (0.25, 64)
    assert found["sft_data"]["path"] == "data/hard.jsonl"
    assert (found["sft_data"]["subset"], found["sft_data"]["end_of_text"]) == (("gsm8k",), False)
    assert found["sft_data"]["max_tokens"] == 512


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ([("alpha_sft: 0.0", "alpha_sft: 0.5")], "training.alpha_sft"),
        ([("buffer:", "sft_data: {path: a.jsonl}\nbuffer:")], "sft_data"),
    ],
)
def test_sft_without_data_or_without_weight_is_off(changes: list[tuple[str, str]], key: str, tmp_path: Path) -> None:
    loaded = translated(tmp_path, *changes)
    assert algorithm(loaded)["sft_data"] is None
    assert algorithm(loaded)["sft_coef"] == 0
    assert "left out" in told(loaded, key)


def test_sft_alone(tmp_path: Path) -> None:
    loaded = translated(tmp_path, ("data: {dataset: gsm8k, split: train}", "sft_data: {path: data/gsm8k_sft.jsonl}"))
    assert loaded.spec.agent.algorithm.name == "sft"
    assert (loaded.spec.env.name, loaded.spec.env.max_frame) == ("gsm8k", 300 * 64)
    assert algorithm(loaded)["batch_size"] == 64
    with pytest.raises(SpecError, match=r"env\.name=VALUE"):
        translated(tmp_path, ("data: {dataset: gsm8k, split: train}", "sft_data: {path: other.jsonl}"))


def test_a_teacher_beside_rewards(tmp_path: Path) -> None:
    gkd = "alpha_sft: 0.0\n  alpha_gkd: 0.3\n  teacher_top_k: 5"
    found = algorithm(translated(tmp_path, ("alpha_sft: 0.0", gkd), ("\nsync:", TEACHER)))
    assert found["teacher"] == "models/chat-1b"
    assert (found["teacher_coef"], found["teacher_top_k"], found["jsd_alpha"]) == (0.3, 5, 0.9)
    assert (found["teacher_kl"], found["teacher_prompt"], found["policy_coef"]) == ("jsd", "chat", 1.0)


def test_the_policy_is_its_own_teacher(tmp_path: Path) -> None:
    changes = [
        ("  prompts_per_optim_step: 64", "  batch_size: 512\n  minibatch_size: 16\n  teacher_top_k: 20"),
        ("{name: drgrpo, beta: 0.001, eps: 0.2, C: 400}", "{name: opsd}"),
    ]
    loaded = translated(tmp_path, *changes)
    found = algorithm(loaded)
    assert (found["name"], found["teacher"], found["teacher_prompt"]) == ("gkd", "self", "answer")
    assert (found["batch_size"], found["group_size"], found["teacher_kl"]) == (512, 8, "forward")
    assert found["learn_from"] == "unsolved"
    assert loaded.spec.env.max_frame == 300 * 512
    with pytest.raises(SpecError, match="does not define"):
        translated(tmp_path, *changes, ("max_staleness: 0", "max_staleness: 0\n  opsd_loss_type: l2"))
    kept = translated(
        tmp_path,
        *changes,
        ("max_staleness: 0", "max_staleness: 0\n  opsd_loss_type: l2"),
        settings=("training.opsd_loss_type=jsd",),
    )
    assert algorithm(kept)["teacher_kl"] == "jsd"


@pytest.mark.parametrize(
    ("loss", "kind", "length", "clip"),
    [
        ("{beta: 0.0}", "reinforce", 2048, None),
        ("{beta: 0.0, C: 100}", "reinforce", 100, None),
        ("{beta: 0.0, eps: 0.3}", "clip", 2048, 0.3),
        ("{name: grpo, beta: 0.0}", "clip", None, 0.2),
    ],
)
def test_losses_without_name_and_numbers(loss: str, kind: str, length: int, clip: float, tmp_path: Path) -> None:
    loaded = translated(tmp_path, ("{name: drgrpo, beta: 0.001, eps: 0.2, C: 400}", loss))
    found = algorithm(loaded)
    assert found["loss"] == kind
    if length is not None:
        assert found["constant_length"] == length
    if clip is not None:
        assert found["clip_low"] == found["clip_high"] == clip
    if "C" not in loss and length == 2048:
        assert "2,048" in told(loaded, "loss.C")
    if kind == "reinforce":
        assert "no clipping" in told(loaded, "loss.eps")


def test_a_reference_that_moves(tmp_path: Path) -> None:
    moved = translated(tmp_path, ("prompts_per_reference_sync: 9999999", "prompts_per_reference_sync: 640"))
    assert algorithm(moved)["reference_updates"] == 10
    assert algorithm(translated(tmp_path))["reference_updates"] is None


def test_a_budget_of_passes_or_by_one_flag(tmp_path: Path) -> None:
    loaded = translated(tmp_path, ("  max_steps: 300\n", ""))
    assert loaded.spec.env.max_frame == 10 * 7473 * 8
    endless = [("  max_steps: 300\n", ""), ("  num_epochs: 10\n", "")]
    with pytest.raises(SpecError, match=r"env\.max_frame=VALUE"):
        translated(tmp_path, *endless)
    given = translated(tmp_path, *endless, settings=("env.max_frame=5000",))
    assert given.spec.env.max_frame == 5000


def test_of_a_key_given_twice_the_last_counts(tmp_path: Path) -> None:
    again = "loss: {name: grpo, beta: 0.5}\nbuffer:"
    loaded = translated(tmp_path, ("buffer:", again))
    assert (loaded.spec.agent.algorithm.name, algorithm(loaded)["kl_coef"]) == ("grpo", 0.5)
    assert "given on lines 24 and" in told(loaded, "loss")
    native = tmp_path / "native.yaml"
    native.write_text("env: {name: copy}\nenv: {name: sort}\n")
    with pytest.raises(SpecError, match="env is given twice"):
        load(str(native))


def test_stop_strings_and_lengths_are_theirs(tmp_path: Path) -> None:
    text = translated(tmp_path).spec.env.text
    assert text is not None
    assert (text.stop, text.max_tokens) == (("Q:", "\n\n"), 512)
    changed = translated(tmp_path, ("max_tokens: 512", "max_tokens: 99"), (', stop: ["Q:", "\\n\\n"]', ""))
    assert changed.spec.env.text is not None
    assert (changed.spec.env.text.stop, changed.spec.env.text.max_tokens) == ((), 512)
    assert "before this one" in told(changed, "sampling.max_tokens")


EVALUATION = """
seed: 7
output_dir: results
vllm: {tensor_parallel_size: 1}
max_gen_toks: {gsm8k_cot: 1024, default: 99}
benchmarks:
  - {task: gsm8k_cot, num_fewshot: 4}
  - {task: minerva_math, num_fewshot: 4}
watch:
  enable: true
  task_groups:
    - {gpu: 0, benchmarks: [{task: gsm8k_cot, num_fewshot: 8}]}
"""


def test_a_file_of_benchmarks_is_a_command(tmp_path: Path) -> None:
    path = tmp_path / "eval.yaml"
    path.write_text(EVALUATION)
    found = evaluation_in(str(path))
    assert found is not None
    assert found.commands == (
        "operant eval MODEL --tasks gsm8k,math -a gsm8k.shots=4 -a gsm8k.max_tokens=1024 -a math.max_tokens=99 "
        "--seed 7 --follow",
        "operant eval MODEL --tasks gsm8k -a gsm8k.shots=8 -a gsm8k.max_tokens=1024 --seed 7 --follow",
    )
    path.write_text(EVALUATION.replace("minerva_math", "minerva_mth"))
    with pytest.raises(SpecError, match="is none of gsm8k_cot"):
        evaluation_in(str(path))
    path.write_text(SAMPLE)
    assert evaluation_in(str(path)) is None
