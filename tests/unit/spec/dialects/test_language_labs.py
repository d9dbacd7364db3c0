"""Files of rlvr-experiments and prime-rl: what each key becomes, and what is said of one that has no counterpart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from operant.errors import SpecError
from operant.spec.dialects.write import native_yaml
from operant.spec.load import Loaded, load
from operant.spec.settings.language_algorithms import VerifiedAlgorithm

FILES = Path(__file__).parent / "files"
LOADABLE = (
    "rlvr_gsm8k.yaml",
    "rlvr_mixed.yaml",
    "prime_rl_gsm8k.toml",
    "prime_rl_older.toml",
    "prime_rl_research.toml",
    "prime_rl_guest.toml",
    "prime_rl_tree.toml",
)


def changed(folder: Path, file: str, old: str, new: str, lossy: bool = False) -> Loaded:
    """The sample with one piece of its text replaced."""
    text = (FILES / file).read_text()
    assert old in text
    path = folder / file
    path.write_text(text.replace(old, new, 1))
    return load(str(path), lossy=lossy)


@pytest.mark.parametrize("file", LOADABLE)
def test_the_written_spec_is_the_translated_one(file: str, tmp_path: Path) -> None:
    loaded = load(str(FILES / file))
    (tmp_path / "native.yaml").write_text(native_yaml([loaded], file))
    again = load(str(tmp_path / "native.yaml"))
    assert again.spec == loaded.spec
    assert not again.lab


# file, a misspelt piece of text, and the word that the error must suggest
TYPOS = [
    ("rlvr_gsm8k.yaml", "max_steps: 300", "max_step: 300", "max_steps"),
    ("rlvr_gsm8k.yaml", "  max_staleness: 0", "  max_stalenes: 0", "max_staleness"),
    ("rlvr_gsm8k.yaml", "verifier: {num_workers", "verifier: {num_worker", "num_workers"),
    ("rlvr_gsm8k.yaml", "{name: drgrpo, beta", "{name: drgrpo, betta", "beta"),
    ("rlvr_gsm8k.yaml", "top_p: 0.95", "topp: 0.95", "top_p"),
    ("rlvr_gsm8k.yaml", "warmup_steps: 10", "warmup_step: 10", "warmup_steps"),
    ("rlvr_gsm8k.yaml", "buffer:", "bufer:", "buffer"),
    ("rlvr_gsm8k.yaml", "data_parallel_size: 2", "data_parallel_sizes: 2", "data_parallel_size"),
    ("rlvr_gsm8k.yaml", "dataset: gsm8k", "dataset: gsm8", "gsm8k"),
    ("prime_rl_gsm8k.toml", "[ckpt]", "[ckp]", "ckpt"),
    ("prime_rl_gsm8k.toml", "group_size = 16", "group_sizes = 16", "group_size"),
    ("prime_rl_gsm8k.toml", "keep_last = 2", "keep_lst = 2", "keep_last"),
    ("prime_rl_gsm8k.toml", "ratio = 0.75", "ration = 0.75", "ratio"),
    ("prime_rl_gsm8k.toml", "max_norm = 1.0", "maxnorm = 1.0", "max_norm"),
    ("prime_rl_gsm8k.toml", "rank = 16", "rnk = 16", "rank"),
    ("prime_rl_older.toml", "kl_tau = 0.0", "kl_ta = 0.0", "kl_tau"),
    ("prime_rl_research.toml", "max_turns = 20, num", "max_turn = 20, num", "max_turns"),
]


@pytest.mark.parametrize(("file", "old", "new", "meant"), TYPOS)
def test_an_unknown_key_is_an_error_with_the_nearest_name(
    file: str, old: str, new: str, meant: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as error:
        changed(tmp_path, file, old, new)
    assert f"did you mean {meant}?" in str(error.value)


LOST = [
    ("rlvr_gsm8k.yaml", "split: train", "split: test", "data.split"),
    ("rlvr_gsm8k.yaml", "config: {model: models/base-1b", "config: {model: models/other", "roles.2.config.model"),
    ("prime_rl_gsm8k.toml", 'algo = "grpo"', 'algo = "echo"', "orchestrator.algo"),
    ("prime_rl_gsm8k.toml", 'type = "adamw"', 'type = "muon"', "trainer.optim.type"),
    ("prime_rl_older.toml", "kl_tau = 0.0", "teacher_tau = 0.5", "trainer.loss.teacher_tau"),
]


@pytest.mark.parametrize(("file", "old", "new", "key"), LOST)
def test_what_would_change_results_is_refused_or_said_to_be_lost(
    file: str, old: str, new: str, key: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match="--lossy"):
        changed(tmp_path, file, old, new)
    told = [str(each) for each in changed(tmp_path, file, old, new, lossy=True).remarks]
    assert any(key in line and "LOST" in line for line in told)


def test_a_loss_without_clipping(tmp_path: Path) -> None:
    found = changed(tmp_path, "rlvr_gsm8k.yaml", "eps: 0.2", "eps: 0").spec.agent.algorithm
    assert found.model_dump()["loss"] == "reinforce"


def test_a_group_of_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nothing to compare"):
        changed(tmp_path, "prime_rl_gsm8k.toml", "group_size = 16\n", "")


def test_an_air_agent_file_becomes_a_mixture_of_research_tasks() -> None:
    loaded = load(str(FILES / "prime_rl_research.toml"))
    spec, told = loaded.spec, {str(each) for each in loaded.remarks}
    text, algorithm = spec.env.text, spec.agent.algorithm.model_dump()
    assert text is not None
    assert spec.env.name == "mixture"
    assert [(part.name, part.weight) for part in text.mixture] == [
        ("battle_of_sexes", 0.25),
        ("prisoners_dilemma", 0.25),
        ("blotto", 0.25),
        ("titanic", 0.25),
    ]
    assert text.mixture[0].arguments == {"instances": 100}
    assert (text.dialogue.turns, text.dialogue.strategy) == (20, "branching")
    assert (algorithm["staleness"], algorithm["group_size"], algorithm["batch_size"]) == (1, 8, 16)
    for argument in ("env_gpu", "container_type", "image_name", "training_timeout", "trajectory_dir", "seed"):
        assert any(f"args.{argument}: left out" in line for line in told)
    assert sum("our re-creation" in line for line in told) == 4
    assert any("max_off_policy_steps: an upper limit, which holds" in line for line in told)


def test_research_tasks_in_the_form_of_today(tmp_path: Path) -> None:
    old = 'env.taskset.id = "gsm8k"'
    new = 'env.taskset.id = "air-mlgym"\nenv.taskset.task_configs = ["3SATTime"]\nenv.agent.max_turns = 7'
    text = changed(tmp_path, "prime_rl_guest.toml", old, new).spec.env.text
    assert text is not None
    assert [part.name for part in text.mixture] == ["verifiers:word_game", "sat"]
    assert text.dialogue.turns == 7


def test_different_turns_are_said_of_each_task(tmp_path: Path) -> None:
    old, new = (
        'args = { task_configs = ["tasks/titanic.yaml"], max_turns = 20 }',
        'args = { task_configs = ["titanic"], max_turns = 5 }',
    )
    text = changed(tmp_path, "prime_rl_research.toml", old, new).spec.env.text
    assert text is not None
    assert text.dialogue.turns is None
    assert [part.arguments["turns"] for part in text.mixture] == [20, 20, 20, 5]


def test_a_task_that_is_not_recreated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="mlgym:FILE"):
        changed(tmp_path, "prime_rl_research.toml", "tasks/blotto.yaml", "tasks/rlMetaMaze.yaml", lossy=True)


def test_a_tree_that_the_policy_directs() -> None:
    spec = load(str(FILES / "prime_rl_tree.toml")).spec
    assert spec.env.name == "directed_research"
    assert spec.env.text is not None
    assert spec.env.text.arguments == {
        "task": "battle_of_sexes",
        "nodes": 11,  # its last turn is never carried out
        "actions": 15,
        "executor": "http://127.0.0.1:8001/v1",
        "executor_model": "executor",
        "begin": "fresh",
        "turns": 12,
        "arguments": {"instances": 64, "eval_instances": 8},
    }
    said = spec.env.text.dialogue
    assert (said.reward, said.reward_every, said.reward_window, said.reward_percentile) == ("percentile", 64, 64, 70)


@pytest.mark.parametrize(
    ("scheme", "reward", "target"),
    [("v6_binary", "binary", None), ("v7_fixed_tier", "target", 0.88), ("v8_global_best", "moving_best", None)],
)
def test_rewards_of_trees(tmp_path: Path, scheme: str, reward: str, target: float | None) -> None:
    text = (FILES / "prime_rl_tree.toml").read_text().replace("v9_percentile", scheme)
    (tmp_path / "tree.toml").write_text(text)
    spec = load(str(tmp_path / "tree.toml")).spec
    assert spec.env.text is not None
    assert spec.env.text.dialogue.reward == reward
    assert spec.env.text.arguments.get("target") == target


@pytest.mark.parametrize(
    ("old", "new", "importance", "loss"),
    [
        ("", "[trainer.loss]\nkl_tau = 0.01\n", "dppo", "squared"),
        ("", "[trainer.loss]\ntype = 'ipo'\nkl_tau = 0.01\n", "ipo", "squared"),
        ("", "[trainer.loss]\nratio_type = 'token'\nkl_tau = 0.01\n", "icepop", "kl"),
        ("max_steps", "inference_gpu_ids = [0]\nmax_steps", "icepop", "squared"),
    ],
)
def test_the_weight_of_the_kl_to_the_generator(tmp_path: Path, old: str, new: str, importance: str, loss: str) -> None:
    text = (FILES / "prime_rl_tree.toml").read_text()
    (tmp_path / "tree.toml").write_text(text.replace(old, new, 1) if old else f"{text}\n{new}")
    algorithm = load(str(tmp_path / "tree.toml")).spec.agent.algorithm
    assert isinstance(algorithm, VerifiedAlgorithm)
    assert (algorithm.importance, algorithm.mismatch_loss) == (importance, loss)
    assert algorithm.mismatch_coef == (0.01 if "kl_tau" in new else 0.0)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return shutil.copytree(FILES / "prime_rl_programs", tmp_path, dirs_exist_ok=True)


@pytest.mark.parametrize("name", ["orch", "train", "infer"])
def test_a_file_of_one_program_is_read_with_those_beside_it(three: Path, name: str) -> None:
    loaded = load(str(three / f"{name}.toml"))
    spec = loaded.spec
    assert (spec.env.name, spec.env.max_frame, spec.name) == ("battle_of_sexes", 160, name)
    assert spec.agent.model is not None
    assert spec.agent.model.optimizer.lr == 1e-4
    assert sum("lies beside it" in str(each) for each in loaded.remarks) == 2


def test_an_error_names_the_file_that_it_is_in(three: Path) -> None:
    trainer = three / "train.toml"
    trainer.write_text(trainer.read_text().replace("lr = 1e-4", "lr = -1"))
    with pytest.raises(SpecError, match=r"train\.toml:6:6"):
        load(str(three / "orch.toml"))
    (three / "orch.toml").unlink()
    with pytest.raises(SpecError, match="no file beside this one is an orchestrator's"):
        load(str(trainer))


def test_variables_come_from_the_environment(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orchestrator = three / "orch.toml"
    orchestrator.write_text(orchestrator.read_text().replace('"tiny"', '"${MODELS}/base"'))
    (three / "train.toml").unlink()
    with pytest.raises(SpecError, match="names the variable MODELS, which is not set"):
        load(str(orchestrator))
    assert load(str(orchestrator), overrides=["MODELS=/there"]).spec.agent.model.source == "/there/base"  # pyright: ignore[reportOptionalMemberAccess]
    monkeypatch.setenv("MODELS", "/models")
    assert load(str(orchestrator)).spec.agent.model.source == "/models/base"  # pyright: ignore[reportOptionalMemberAccess]


def test_any_other_environment_is_one_of_verifiers() -> None:
    loaded = load(str(FILES / "prime_rl_guest.toml"))
    text = loaded.spec.env.text
    assert text is not None
    assert [(part.name, part.arguments) for part in text.mixture] == [
        ("verifiers:word_game", {"rounds": 6}),
        ("gsm8k", {}),
    ]
    assert text.dialogue.strategy == "interleaved"
    assert any("agent.harness: left out" in str(each) for each in loaded.remarks)


@pytest.mark.parametrize(
    ("file", "old", "new", "staleness"),
    [
        ("rlvr_gsm8k.yaml", "max_staleness: 0", "max_staleness: 0", 0),
        ("rlvr_mixed.yaml", "checkpoint_interval: 0", "max_staleness: 4", 4),
        ("rlvr_mixed.yaml", "checkpoint_interval: 0", "max_staleness: 1", 0),
        ("prime_rl_gsm8k.toml", "max_off_policy_steps = 8", "max_off_policy_steps = 8", 8),
        ("prime_rl_older.toml", "max_async_level = 1", "max_async_level = 0", 0),
    ],
)
def test_how_old_completions_may_be(file: str, old: str, new: str, staleness: int, tmp_path: Path) -> None:
    assert changed(tmp_path, file, old, new).spec.agent.algorithm.model_dump()["staleness"] == staleness


@pytest.mark.parametrize("ratios", ["[0.75]", '["a", 0.25]', "0.5", "[true, false]"])
def test_ratios_that_do_not_fit_the_environments_are_refused(ratios: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="not a list of numbers, one for each of 2 environments"):
        changed(tmp_path, "prime_rl_research.toml", "env_ratios = [0.75, 0.25]", f"env_ratios = {ratios}")


def test_a_ratio_of_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match='ratio = "half" is not a number'):
        changed(tmp_path, "prime_rl_gsm8k.toml", "ratio = 0.75", 'ratio = "half"')
