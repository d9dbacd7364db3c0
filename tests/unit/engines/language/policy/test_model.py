"""Policies: what they are loaded from, what they refuse, and folders that others can read."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from operant.engines.language.generation.generator import Prompt, Sampling
from operant.engines.language.generation.torch_generator import TorchGenerator
from operant.engines.language.policy.batching import Sample, micro_batches
from operant.engines.language.policy.fetch import MODELS
from operant.engines.language.policy.logprobs import token_logprobs
from operant.engines.language.policy.model import load_policy, write_folder
from operant.engines.language.rollouts.single_turn import render
from operant.envs.text.task import Problem
from operant.errors import UsageError
from tests.unit.engines.language.small_models import SIZES

ASKED = Problem("a/train/1", "a", "2+2=", 4, system="Be short.", prefix=" ", stop=("\n",), max_tokens=5)
TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"


def test_tiny_depends_on_its_seed_alone() -> None:
    one, other = (load_policy("tiny", seed=3, tiny=SIZES).model.state_dict() for _ in range(2))
    assert all(torch.equal(one[name], other[name]) for name in one)
    third = load_policy("tiny", seed=4, tiny=SIZES).model.state_dict()
    assert not torch.equal(one["model.embed_tokens.weight"], third["model.embed_tokens.weight"])


def test_bytes_come_back_as_they_were() -> None:
    tokenizer = load_policy("tiny", tiny=SIZES).tokenizer
    text = "a  b\n\t3 < 4 ! é 日"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert len(tokenizer(text).input_ids) == len(text.encode())


def test_a_folder_is_read_by_transformers_and_by_us(tmp_path: Path) -> None:
    policy = load_policy("tiny", seed=3, tiny=SIZES)
    write_folder(policy, tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    mine = policy.model.state_dict()
    assert all(torch.equal(value, mine[name]) for name, value in plain.state_dict().items())
    assert AutoTokenizer.from_pretrained(tmp_path).eos_token_id == plain.generation_config.eos_token_id[0] == 1
    again = load_policy(str(tmp_path))
    assert (again.eos_ids, again.pad_id, again.has_chat_template) == ((1,), 0, False)


def test_weights_with_gaps_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    file = write_folder(load_policy("tiny", tiny=SIZES), tmp_path) / "model.safetensors"
    weights = load_file(file)
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, file, {"format": "pt"})
    with pytest.raises(UsageError, match=r"missing keys: model\.layers\.1\.mlp\.up_proj\.weight"):
        load_policy(str(tmp_path))
    save_file(weights | {"model.layers.1.mlp.up_proj.weight": torch.zeros(3, 3)}, file, {"format": "pt"})
    with pytest.raises(UsageError, match=r"do not fit the model|could not be loaded"):
        load_policy(str(tmp_path))


@pytest.mark.parametrize("source", ["nobody/nothing", "no such folder", *MODELS])
def test_nothing_is_downloaded_unasked(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPERANT_MODELS", str(tmp_path))
    with pytest.raises(UsageError) as told:
        load_policy(source)
    assert "operant models fetch" in str(told.value)


def test_lora_is_generated_with_trained_and_written_as_plain_weights(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    policy = load_policy("tiny", tiny=SIZES, lora={"r": 4, "target_modules": ["q_proj", "down_proj"]})
    with torch.no_grad():
        for name, value in policy.model.named_parameters():
            if "lora_B" in name:
                value += 0.3 * torch.randn(value.shape, generator=torch.Generator().manual_seed(2))
    prompt = Prompt((5, 6, 7), 6)
    (said,) = TorchGenerator(policy).generate([prompt], Sampling(seed=1))[0]
    (batch,) = micro_batches([Sample(prompt.tokens, said.tokens)], 64)
    with torch.no_grad():
        scores = token_logprobs(policy.model, batch)
    torch.testing.assert_close(scores.logprobs, torch.tensor(said.logprobs), atol=1e-4, rtol=0)
    plain = load_policy(str(write_folder(policy, tmp_path)))
    (same,) = TorchGenerator(plain).generate([prompt], Sampling(seed=1))[0]
    assert same.tokens == said.tokens
    assert [name for name, value in policy.model.named_parameters() if value.requires_grad and "lora" not in name] == []


def test_a_model_without_a_template_is_asked_in_plain_text() -> None:
    policy = load_policy("tiny", tiny=SIZES)
    prompt = render(ASKED, policy)
    assert policy.tokenizer.decode(list(prompt.tokens)) == "Be short.\n\n2+2= "
    assert (prompt.max_tokens, prompt.stop) == (5, ("\n",))
    with pytest.raises(UsageError, match="has no chat template"):
        render(ASKED, policy, "chat")


def test_a_model_with_a_template_is_asked_in_turns_and_begins_once() -> None:
    from dataclasses import replace

    policy = load_policy("tiny", tiny=SIZES)
    policy.tokenizer.chat_template = "<eos>" + TEMPLATE
    chat = replace(policy, has_chat_template=True, bos_id=1)
    tokens = render(ASKED, chat).tokens
    assert policy.tokenizer.decode(list(tokens)) == "<eos>[system]Be short.[user]2+2=[assistant] "
    raw = render(ASKED, chat, "raw").tokens
    assert raw[0] == 1
    assert 1 not in raw[1:]
