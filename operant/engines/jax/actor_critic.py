"""An actor-critic network as a learner acts with it and learns from it: of single steps or, recurrent, of sequences.

What the network reads is in rows: steps [R, ...], or what each environment played in one update, [N, T, ...].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import distributions, nets, normalize, recurrent
from operant.engines.jax.devices import on_gpu
from operant.engines.jax.learner import GREEDY, RANDOM, Learner, Policy, PolicyInput
from operant.engines.jax.normalize import RunningMeanStd
from operant.envs.functional.env import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.ppo import PpoSpec

ALIGNED_COLUMNS = 16  # observations of more numbers are stored in whole multiples of it


class Samples(NamedTuple):
    """One rollout as rows, ready for minibatches.

    Log-probability, the critic's output and advantage are the columns of `estimates`: a minibatch gathers them at once.
    Where the critic learns standardised returns, its target is a fourth column; else it is the sum of two others.
    Sequences have `begun`, which marks the first observations of episodes, and the `hidden` state before each.
    """

    observation: Array
    mask: Array | None
    action: Array
    estimates: Array
    begun: Array | None = None
    hidden: Array | None = None

    @property
    def logp(self) -> Array:
        """Log-probabilities of the actions."""
        return self.estimates[..., 0]

    @property
    def value(self) -> Array:
        """Outputs of the critic before the update."""
        return self.estimates[..., 1]

    @property
    def advantage(self) -> Array:
        """Advantages of the actions."""
        return self.estimates[..., 2]

    @property
    def target(self) -> Array:
        """What the critic should give."""
        return self.estimates[..., 3] if self.estimates.shape[-1] > 3 else self.value + self.advantage


class ActorCritic(Learner):
    """A learner with a policy and a value (abstract)."""

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        assert isinstance(self.spec.agent.algorithm, PpoSpec)
        self.settings, self.net = self.spec.agent.algorithm, self.spec.agent.net
        self.dtype = jnp.dtype(self.spec.meta.precision)
        self.storage = env.storage(self.spec.meta.storage)
        self.is_recurrent = self.net.memory is not None
        self._padding = self._missing_columns()

    def _missing_columns(self) -> int:
        """Zeros that stored observations get: a GPU multiplies rows of other lengths at a third of its rate."""
        shape = self.env.observation_shape
        read_as_is = self.env.on_host or self.is_recurrent or self.spec.env.normalize_obs
        if read_as_is or not on_gpu() or nets.layers_of(self.net) is not nets.MLP or len(shape) != 1:
            return 0
        return -shape[0] % ALIGNED_COLUMNS if shape[0] > ALIGNED_COLUMNS else 0

    def stored(self, observation: Array) -> Array:
        """Observations [N, ...] as the learner keeps them and as its network reads them."""
        kept = observation.astype(self.storage)
        return jnp.pad(kept, ((0, 0), (0, self._padding))) if self._padding else kept

    def init_params(self, rng: np.random.Generator) -> nets.Params:
        actions, inputs = self.env.actions, nets.inputs_of(self.env.observation_shape)
        outputs = distributions.num_outputs(actions)
        discrete, hidden = isinstance(actions, Discrete), self.settings.critic_hidden
        init = recurrent.init_actor_critic if self.is_recurrent else nets.init_actor_critic
        return init(self.net, rng, inputs, outputs, discrete, hidden)

    def init_hidden(self, count: int) -> Array | None:
        return jnp.zeros((count, recurrent.hidden_width(self.net))) if self.is_recurrent else None

    def rows(self, x: Array) -> Array:
        """Steps and environments [T, N, ...] as rows."""
        return x.swapaxes(0, 1) if self.is_recurrent else flat(x)

    def grid(self, rows: Array, envs: int) -> Array:
        """Rows of so many environments as steps and environments [T, N, ...]."""
        return rows.swapaxes(0, 1) if self.is_recurrent else rows.reshape(-1, envs, *rows.shape[1:])

    def forward(
        self, params: Any, obs_stats: RunningMeanStd | None, batch: Samples
    ) -> tuple[Array, Array, Array | None]:
        """Policy output and value of each step of a batch, and the hidden states after it, if there are any."""
        inputs = self.normalize_obs(obs_stats, batch.observation)
        if batch.begun is None or batch.hidden is None:
            return *nets.forward(self.net, params, inputs, self.dtype), None
        return recurrent.forward(self.net, params, inputs, batch.begun, batch.hidden, self.dtype)

    def policy_output(self, policy: Policy, observation: Array) -> Array:
        """Logits or means of stored observations, of a network that is not recurrent."""
        inputs = self.normalize_obs(policy.obs_stats, observation)
        return nets.policy_output(self.net, policy.params, inputs, self.dtype)

    def outputs_and_hidden(self, policy: Policy, seen: PolicyInput) -> tuple[Array, Array | None]:
        if seen.begun is None or seen.hidden is None:
            return self.outputs(policy, seen.observation), None
        inputs = self.normalize_obs(policy.obs_stats, self.stored(seen.observation))
        return recurrent.policy_output(self.net, policy.params, inputs, seen.begun, seen.hidden, self.dtype)

    def normalize_obs(self, obs_stats: RunningMeanStd | None, observation: Array) -> Array:
        """Stored observations as inputs of the network."""
        return normalize.normalize_obs(obs_stats, observation.astype(jnp.float32), self.spec.env.clip_obs)

    def sample_action(self, policy: Policy, output: Array, mask: Array | None, noise: Array) -> Array:
        """Legal actions of policy outputs, in the policy's scale."""
        legal = distributions.mask_logits(output, mask)
        return distributions.sample(self.env.actions, legal, noise, policy.params.get("log_std"))

    def log_prob(self, output: Array, mask: Array | None, action: Array, log_std: Array | None) -> tuple[Array, Array]:
        """Log-probability of each action among the legal ones, and the entropy."""
        legal = distributions.mask_logits(output, mask)
        return distributions.log_prob_and_entropy(self.env.actions, legal, action, log_std)

    @property
    def exploration_bits(self) -> int:
        return distributions.num_outputs(self.env.actions)

    def explore_on_host(
        self, policy: Policy, updates: Array, hyper: Any, seen: PolicyInput, bits: Array
    ) -> tuple[Array, Array | None]:
        del updates, hyper  # the policy itself explores, as much at any time
        output, hidden = self.outputs_and_hidden(policy, seen)
        return self.sample_action(policy, output, seen.mask, distributions.noise(self.env.actions, bits)), hidden

    def outputs(self, policy: Policy, observation: Array) -> Array:
        return self.policy_output(policy, self.stored(observation))

    def act(self, policy: Policy, hyper: Any, observation: Array, mask: Array | None, key: Array, mode: Array) -> Array:
        return self.act_and_hidden(policy, hyper, PolicyInput(observation, mask), key, mode)[0]

    def act_and_hidden(
        self, policy: Policy, hyper: Any, seen: PolicyInput, key: Array, mode: Array
    ) -> tuple[Array, Array | None]:
        output, hidden = self.outputs_and_hidden(policy, seen)
        noise = distributions.noise(self.env.actions, jax.random.bits(key, output.shape))
        if isinstance(self.env.actions, Discrete):
            legal = distributions.mask_logits(jnp.where(mode == RANDOM, 0.0, output), seen.mask)
            chosen = distributions.sample(self.env.actions, legal, jnp.where(mode == GREEDY, 0.0, noise), None)
            return chosen, hidden
        drawn = output + jnp.exp(policy.params["log_std"]) * jnp.where(mode == GREEDY, 0.0, noise)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(mode == RANDOM, lax.erf(noise / 2**0.5), drawn), hidden

    def probs_and_value(self, policy: Policy, observation: Array, mask: Array | None) -> tuple[Array, Array] | None:
        if not isinstance(self.env.actions, Discrete) or self.is_recurrent:
            return None
        inputs = self.normalize_obs(policy.obs_stats, self.stored(observation))
        output, value = nets.forward(self.net, policy.params, inputs, self.dtype)
        return jax.nn.softmax(distributions.mask_logits(output, mask)), value


def flat(x: Array) -> Array:
    """Steps and environments [T, N, ...] as rows [T * N, ...]."""
    return x.reshape(-1, *x.shape[2:])
