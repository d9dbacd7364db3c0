"""Recurrent networks against float64 numpy cells: acting step by step, learning from sequences, and both alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from operant.engines.torch.learners import build_learner
from operant.engines.torch.networks.acting import hidden_state_of
from operant.engines.torch.networks.recurrent import Core, RecurrentActorCritic, Stream
from operant.engines.torch.on_policy import Rollout, build_actor, build_net, collect
from operant.engines.torch.ppo import Ppo
from operant.envs.gym import make_env, observation_shape
from operant.run.seeding import Seeds
from operant.spec.schema import Spec
from operant.spec.settings.nets import GruSpec, ImpalaSpec, LstmSpec, NatureCnnSpec, Net, Recurrent

SPECS = [
    GruSpec(hidden=(7,), recurrent=5),
    GruSpec(hidden=(), recurrent=5, layers=2, shared=True),
    LstmSpec(hidden=(7,), recurrent=5, layers=2),
    LstmSpec(hidden=(7, 6), recurrent=5, shared=True),
]
by_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.type}-{spec.layers}-{spec.shared}")


def exactly(array: torch.Tensor) -> np.ndarray:
    return array.detach().numpy().astype(np.float64)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def cell_step(core: Core, layer: int, x: np.ndarray, state: np.ndarray) -> np.ndarray:
    """One layer's new state [parts, units] from its old one, by the definition of the cell."""
    cells = core.cells
    w, u, b, c = (
        exactly(getattr(cells, f"{name}_l{layer}")) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    if isinstance(cells, torch.nn.GRU):
        (h,) = state
        (xr, xz, xn), (hr, hz, hn) = np.split(w @ x + b, 3), np.split(u @ h + c, 3)
        r, z = logistic(xr + hr), logistic(xz + hz)
        return np.array([(1 - z) * np.tanh(xn + r * hn) + z * h])
    h, kept = state
    i, f, g, o = np.split(w @ x + b + u @ h + c, 4)
    kept = logistic(f) * kept + logistic(i) * np.tanh(g)
    return np.array([logistic(o) * np.tanh(kept), kept])


def stream_step(stream: Stream, obs: np.ndarray, memory: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Every head's output for one observation, and the new memory."""
    x = obs.astype(np.float64)
    for layer in stream.trunk:
        x = exactly(layer.weight) @ x + exactly(layer.bias) if isinstance(layer, torch.nn.Linear) else np.tanh(x)
    before = memory.reshape(stream.core.shape)
    after = np.empty_like(before)
    for k in range(before.shape[1]):
        after[:, k] = cell_step(stream.core, k, x, before[:, k])
        x = after[0, k]
    linear = [head for head in stream.heads if isinstance(head, torch.nn.Linear)]
    heads = [exactly(head.weight) @ x + exactly(head.bias) for head in linear]
    return heads, after.reshape(-1)


def one_step(net: RecurrentActorCritic, obs: np.ndarray, memory: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    outputs, after, start = [], [], 0
    for stream in net.streams:
        found, kept = stream_step(stream, obs, memory[start : start + stream.core.width])
        outputs += found
        after.append(kept)
        start += stream.core.width
    return outputs, np.concatenate(after)


def random_net(spec: Recurrent) -> RecurrentActorCritic:
    """A network with every weight and bias away from zero."""
    torch.manual_seed(0)
    net = RecurrentActorCritic(spec, 3, 4, discrete=True)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.6 * torch.randn_like(parameter))
    return net


def case(net: RecurrentActorCritic, worlds: int = 3, steps: int = 11) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observations and starts [N, T] of episodes of many lengths, one at the first step, and first memories."""
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(worlds, steps, 3)).astype(np.float32)
    begun = rng.random((worlds, steps)) < 0.25
    begun[:, 0] = np.arange(worlds) == 0
    width = sum(stream.core.width for stream in net.streams)
    return obs, begun, rng.normal(size=(worlds, width)).astype(np.float32)


def expected(net: RecurrentActorCritic, obs: np.ndarray, begun: np.ndarray, memory: np.ndarray) -> Any:
    """Policy outputs, values and the memories after every step, one world and one step at a time."""
    outputs, values, memories = (
        np.empty((*begun.shape, 4)),
        np.empty(begun.shape),
        np.empty((*begun.shape, memory.shape[1])),
    )
    for i in range(len(begun)):
        state = memory[i].astype(np.float64)
        for t in range(begun.shape[1]):
            found, state = one_step(net, obs[i, t], np.zeros_like(state) if begun[i, t] else state)
            outputs[i, t], values[i, t], memories[i, t] = found[0], found[-1][0], state
    return outputs, values, memories


@by_spec
def test_a_sequence_gives_what_the_cells_give_step_by_step(spec: Recurrent):
    net = random_net(spec)
    obs, begun, memory = case(net)
    output, value = net(*(torch.from_numpy(each) for each in (obs, begun, memory)))
    outputs, values, _ = expected(net, obs, begun, memory)
    np.testing.assert_allclose(output.detach().numpy(), outputs, atol=2e-5)
    np.testing.assert_allclose(value.detach().numpy(), values, atol=2e-5)


@by_spec
def test_acting_gives_what_the_cells_give_and_foresight_moves_nothing(spec: Recurrent):
    net = random_net(spec)
    obs, begun, memory = case(net)
    outputs, _, memories = expected(net, obs, begun, memory)
    hidden_state = hidden_state_of(net)
    hidden_state.states = memory.copy()
    for t in range(begun.shape[1]):
        np.testing.assert_allclose(hidden_state(obs[:, t], begun[:, t]), outputs[:, t], atol=2e-5)
        np.testing.assert_allclose(hidden_state.states, memories[:, t], atol=2e-5)
        kept = hidden_state.states.copy()
        ahead = hidden_state.values(obs[:2, 0], hidden_state.states[:2])
        wanted = [one_step(net, obs[i, 0], memories[i, t])[0][-1][0] for i in range(2)]
        np.testing.assert_allclose(ahead, wanted, atol=2e-5)
        np.testing.assert_array_equal(hidden_state.states, kept)


@pytest.mark.parametrize(
    "spec",
    [
        NatureCnnSpec(conv=((4, 3, 1),), hidden=(6,), recurrent=5, layers=2),
        ImpalaSpec(channels=(4,), hidden=(6,), recurrent=5, cell="lstm", shared=False),
    ],
    ids=lambda spec: spec.type,
)
def test_memories_follow_convolutions_too(spec: Net):
    torch.manual_seed(0)
    net = RecurrentActorCritic(spec, (2, 8, 8), 4, discrete=True)
    _, begun, memory = case(net)
    obs = np.random.default_rng(1).integers(256, size=(*begun.shape, 2, 8, 8), dtype=np.uint8)
    output, _ = net(*(torch.from_numpy(each) for each in (obs, begun, memory)))
    hidden_state = hidden_state_of(net)
    hidden_state.states = memory
    acted = np.stack([hidden_state(obs[:, t], begun[:, t]) for t in range(begun.shape[1])], axis=1)
    np.testing.assert_allclose(output.detach().numpy(), acted, atol=1e-5)
    assert np.abs(np.diff(acted, axis=1)).max() > 1e-4


@by_spec
def test_no_gradient_and_no_memory_crosses_the_start_of_an_episode(spec: Recurrent):
    net = random_net(spec)
    obs, begun, memory = (torch.from_numpy(each) for each in case(net))
    begun[:] = False
    begun[1, 4] = True
    obs.requires_grad_()
    memory.requires_grad_()
    output, value = net(obs, begun, memory)
    (output[1, 4:].sum() + value[1, 4:].sum()).backward()
    assert obs.grad is not None
    assert memory.grad is not None
    assert (obs.grad[1, :4] == 0).all()
    assert (obs.grad[1, 4:] != 0).any()
    assert (obs.grad[[0, 2]] == 0).all()
    assert (memory.grad == 0).all()


@by_spec
def test_gradients_through_time_are_those_of_finite_differences(spec: Recurrent):
    net = random_net(spec).double()
    obs, begun, memory = case(net)
    inputs = torch.from_numpy(obs).double(), torch.from_numpy(begun), torch.from_numpy(memory).double()

    def loss() -> torch.Tensor:
        output, value = net(*inputs)
        return output.square().sum() + value.sum()

    loss().backward()
    for name, parameter in net.named_parameters():
        at = tuple(size // 2 for size in parameter.shape)
        assert parameter.grad is not None
        found, step = float(parameter.grad[at]), 1e-6
        with torch.no_grad():
            parameter[at] += step
            ahead = float(loss())
            parameter[at] -= 2 * step
            numeric = (ahead - float(loss())) / (2 * step)
            parameter[at] += step
        assert found == pytest.approx(numeric, rel=1e-4, abs=1e-6), name


def learner_of(net: dict[str, Any], **env: Any) -> Ppo:
    spec = {
        "env": {"name": "operant/CartPoleNoVelocity-v1", "num_envs": 3, "max_frame": 4000, **env},
        "agent": {"algorithm": {"name": "ppo", "time_horizon": 32, "minibatch_size": 32}, "net": net},
    }
    learner = build_learner(Spec.model_validate(spec), Seeds(2), torch.device("cpu"))
    assert isinstance(learner, Ppo)
    return learner


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_rollouts_are_evaluated_as_they_were_played(kind: str):
    """Over several updates, with episodes that end, are cut short, and go on from one rollout to the next."""
    learner = learner_of({"type": kind, "hidden": [16], "recurrent": 8, "layers": 2}, max_t=20)
    truncated, carried = 0, 0
    for _ in range(4):
        rollout, played = _collect_noting(learner)
        output, value = learner.forward(learner.observations(rollout))
        np.testing.assert_allclose(output.detach().transpose(0, 1).numpy(), played, atol=1e-5)
        truncated += _check_successors(learner, rollout, learner.grid(value.detach()))
        learner.tracker.frames += rollout.reward.size
        learner.update(rollout)
        assert rollout.hidden is not None
        carried += int((~rollout.hidden.begun[0]).sum())
    assert truncated > 2
    assert carried > 2


def _collect_noting(learner: Ppo) -> tuple[Rollout, np.ndarray]:
    """A rollout, and the outputs [T, N, K] that its actions were drawn from."""
    pick, played = learner.actor.pick, []

    def noting(output: np.ndarray, noise: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        played.append(output.copy())
        return pick(output, noise, mask)

    learner.actor.pick = noting
    rollout = collect(learner.vector, learner.actor, learner.rewards, learner.rng_act, learner.horizon)
    learner.actor.pick = pick
    return rollout, np.stack(played)


def _check_successors(learner: Ppo, rollout: Rollout, value: np.ndarray) -> int:
    """Each step's successor has the value that the float64 cells give with all that was seen before it."""
    kept = rollout.hidden
    assert kept is not None
    found = learner.next_values(rollout, value)
    net = learner.net
    assert isinstance(net, RecurrentActorCritic)
    steps, num = rollout.reward.shape
    for i in range(num):
        state = kept.start[i].astype(np.float64)
        for t in range(steps):
            _, state = one_step(net, rollout.obs[t, i], np.zeros_like(state) if kept.begun[t, i] else state)
            if rollout.terminated[t, i]:
                continue
            following = rollout.obs[t + 1, i] if t + 1 < steps else rollout.last_obs[i]
            following = rollout.final_obs[t, i] if rollout.truncated[t, i] else following
            wanted = one_step(net, following, state)[0][-1][0]
            assert found[t, i] == pytest.approx(wanted, abs=1e-4), (t, i)
    return int(rollout.truncated.sum())


def test_other_play_leaves_the_memory_of_training_alone():
    learner = learner_of({"type": "gru", "hidden": [16], "recurrent": 8})
    learner.iterate()
    hidden_state = learner.actor.hidden_state
    assert hidden_state is not None
    kept = hidden_state.states.copy()
    obs = np.zeros((5, 2), np.float32)
    first = learner.actor.greedy(obs, None, np.ones(5, bool))
    learner.actor.greedy(obs, None, np.zeros(5, bool))
    np.testing.assert_array_equal(hidden_state.states, kept)
    np.testing.assert_array_equal(learner.actor.greedy(obs[:2], None, np.ones(2, bool)), first[:2])


def test_a_loaded_actor_remembers_like_the_one_that_was_saved():
    learner = learner_of({"type": "lstm", "hidden": [16], "recurrent": 8, "shared": True})
    learner.iterate()
    env = make_env(learner.spec.env)
    shape, actions = observation_shape(env), learner.vector.actions
    net = build_net(learner.spec, shape, actions)
    net.load_state_dict(learner.net.state_dict())
    copied = build_actor(learner.spec, net, shape, actions)
    rng = np.random.default_rng(0)
    for t in range(20):
        obs, begun = rng.normal(size=(4, 2)).astype(np.float32), np.full(4, t in (0, 9))
        ours, theirs = (actor.greedy(obs, None, begun) for actor in (learner.actor, copied))
        np.testing.assert_array_equal(ours, theirs)
