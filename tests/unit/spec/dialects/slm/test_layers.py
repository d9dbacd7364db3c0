"""Images and memory: ConvNet, convolutions of a graph, RecurrentNet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.spec.dialects.slm.conftest import native, refused, spec_of

REPLAY = {"name": "Replay", "batch_size": 32, "max_size": 5000}
DQN = {
    "name": "DQN",
    "action_policy": "epsilon_greedy",
    "explore_var_spec": {"name": "no_decay", "start_val": 0.1},
    "gamma": 0.99,
    "training_frequency": 4,
}
COMMON = {"hid_layers_activation": "relu", "update_frequency": 100, "optim_spec": {"name": "Adam", "lr": 1e-4}}
STACK = [[32, 8, 4, 0, 1], [64, 4, 2, 0, 1], [64, 3, 1, 0, 1]]
NATIVE_STACK = [[32, 8, 4], [64, 4, 2], [64, 3, 1]]


def dqn(**net: Any) -> dict[str, Any]:
    return spec_of(DQN, REPLAY, {**COMMON, **net}, name="ALE/Pong-v5", life_loss_info=True)


@pytest.mark.parametrize(("kind", "duelling"), [("ConvNet", None), ("DuelingConvNet", True)])
def test_convolutions_and_widths(kind: str, duelling: bool | None) -> None:
    data, _ = native(dqn(type=kind, conv_hid_layers=STACK, fc_hid_layers=[256], normalize=True))
    net = data["agent"]["net"]
    assert (net["type"], net["conv"], net["hidden"], net["activation"]) == ("nature_cnn", NATIVE_STACK, [256], "relu")
    assert net.get("duelling") is duelling


def test_convolutions_of_a_graph() -> None:
    kernels = [{"LazyConv2d": {"out_channels": a, "kernel_size": b, "stride": c}} for a, b, c in NATIVE_STACK]
    layers = [each for kernel in kernels for each in (kernel, {"ReLU": None})]
    layers += [{"Flatten": None}, {"LazyLinear": {"out_features": 512}}, {"ReLU": None}]
    wiring = {"input": "x", "modules": {"body": ["x"]}, "output": "body"}
    arc = {"modules": {"body": {"Sequential": layers}}, "graph": wiring}
    net = native(dqn(type="TorchArcNet", arc=arc, normalize=True))[0]["agent"]["net"]
    assert (net["type"], net["conv"], net["hidden"]) == ("nature_cnn", NATIVE_STACK, [512])


@pytest.mark.parametrize("layer", [[32, 8, 4, 1, 1], [32, 8, 4, 0, 2], [32, 8], [32, [8, 4], 4], "32", [True, 8, 4]])
def test_other_convolutions_are_refused(layer: Any) -> None:
    assert "unpadded and undilated" in refused(dqn(type="ConvNet", conv_hid_layers=[layer], fc_hid_layers=[]))


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_cells_that_remember(cell: str) -> None:
    net = {"cell_type": cell, "fc_hid_layers": [32], "rnn_hidden_size": 64, "rnn_num_layers": 2, "seq_len": 4}
    net = {
        "type": "RecurrentNet",
        "shared": True,
        "hid_layers_activation": "relu",
        **net,
        "optim_spec": {"name": "Adam"},
    }
    algorithm = {"name": "ActorCritic", "gamma": 0.99, "lam": 0.9, "training_frequency": 8}
    data, remarks = native(spec_of(algorithm, {"name": "OnPolicyBatchReplay"}, net))
    found = data["agent"]["net"]
    assert (found["type"], found["hidden"], found["recurrent"], found["layers"]) == (cell.lower(), [32], 64, 2)
    assert any("remembers its whole episode" in each for each in remarks)


def test_learners_of_single_steps_have_a_hidden_layer_in_their_place() -> None:
    data, remarks = native(dqn(type="RecurrentNet", fc_hid_layers=[32], rnn_hidden_size=64, seq_len=4))
    assert (data["agent"]["net"]["type"], data["agent"]["net"]["hidden"]) == ("mlp", [32, 64])
    assert any("learns from single steps" in each for each in remarks)


def test_nets_without_counterpart_are_named() -> None:
    assert "cell_type" in refused(dqn(type="RecurrentNet", cell_type="RNN", rnn_hidden_size=8))
    assert "bidirectional" in refused(dqn(type="RecurrentNet", rnn_hidden_size=8, bidirectional=True))
    assert "no heads and tails to choose from" in refused(dqn(type="HydraMLPNet"))


def test_pixels_of_a_net_that_has_none_are_left_out() -> None:
    _, remarks = native(dqn(type="MLPNet", hid_layers=[8], normalize=True))
    assert any("SLM-Lab's MLPNet does not read it" in each for each in remarks)


def test_keys_of_atari_reach_the_emulator() -> None:
    env = native(dqn(type="MLPNet", hid_layers=[8]))[0]["env"]
    assert (env["kwargs"], env["clip_reward"]) == ({"life_loss_info": True}, 1.0)


def test_games_of_the_older_form_are_todays() -> None:
    data = dqn(type="ConvNet", conv_hid_layers=STACK, fc_hid_layers=[256])
    old = {"name": "PongNoFrameskip-v4", "frame_op": "concat", "frame_op_len": 4, "reward_scale": "sign"}
    older = {**data, "agent": [data["agent"]], "env": [{**old, "num_envs": 4, "max_frame": 1000}], "body": {}}
    env = native(older)[0]["env"]
    assert (env["name"], env["clip_reward"]) == ("ALE/Pong-v5", 1.0)
    assert env["kwargs"] == {"repeat_action_probability": 0.0, "life_loss_info": True}
    older["env"][0]["frame_op_len"] = 2
    assert "env.frame_op_len = 2 has no counterpart" in refused(older)
