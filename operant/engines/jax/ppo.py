"""Proximal policy optimisation (Schulman et al., 2017) in one compiled program, read top to bottom.

An update plays `time_horizon` steps in every environment with the current policy, judges them in one
pass, and takes a few epochs of clipped gradients. The pass that judges has the shape of a minibatch,
so that it is compiled to the very arithmetic of the gradient steps: the first ratio is 1 exactly.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from operant.engines.jax import losses, nets, normalise, policies, worlds
from operant.engines.jax.devices import Axis, mean_over, own_key
from operant.engines.jax.learner import GREEDY, RANDOM, Learner, Line, Policy, Report, State, left_of, line_of
from operant.engines.jax.normalise import Moments
from operant.engines.jax.optimise import Optimiser, Rates, rates_of
from operant.engines.jax.shuffle import shuffled
from operant.engines.jax.tracing import CRITIC, OPTIMISER
from operant.engines.jax.worlds import Cuts, Step, Tally, Worlds
from operant.envs.functional import Discrete, FunctionalEnv
from operant.spec.schema import Spec
from operant.spec.settings.ppo import PpoSpec

REPORTED = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction", "optim/grad_norm")
TRACED = ("gamma", "lam", "clip_eps", "entropy_coef", "val_loss_coef", "clip_vloss", "target_kl")


class Hyper(NamedTuple):
    """The traced numbers: lanes of one program may differ in them."""

    rates: Rates
    gamma: Array
    lam: Array
    clip: Line
    entropy: Line
    value_coef: Array
    value_clip: Array
    target_kl: Array
    budget: Array


class Mind(NamedTuple):
    """What learns, beside the policy itself."""

    optimiser: Any
    rewards: Moments
    key: Array
    update: Array


class Played(NamedTuple):
    """The environments and the running discounted returns of each."""

    worlds: Worlds
    running: Array


class Samples(NamedTuple):
    """One rollout as rows, ready for minibatches.

    Log-probability, value and advantage lie side by side in `judged` [R, 3], so that a minibatch fetches
    them at once.
    """

    observation: Array
    mask: Array | None
    action: Array
    judged: Array

    @property
    def logp(self) -> Array:
        """Log-probabilities of the actions."""
        return self.judged[..., 0]

    @property
    def value(self) -> Array:
        """Values before the update."""
        return self.judged[..., 1]

    @property
    def advantage(self) -> Array:
        """Advantages of the actions."""
        return self.judged[..., 2]

    @property
    def target(self) -> Array:
        """What the values should be."""
        return self.value + self.advantage


class Ppo(Learner):
    """The learner; `size` samples of a minibatch are on each device."""

    TRACED = (*OPTIMISER, CRITIC, *(f"agent.algorithm.{name}" for name in TRACED))

    def __init__(self, spec: Spec, env: FunctionalEnv) -> None:
        super().__init__(spec, env)
        spec = self.spec
        assert isinstance(spec.agent.algorithm, PpoSpec)
        self.settings, self.net = spec.agent.algorithm, spec.agent.net
        self.frames = spec.env.num_envs * self.settings.time_horizon
        self.local = spec.env.num_envs // spec.meta.devices
        minibatch, self.epochs = self.settings.scaled(spec.env.num_envs)
        self.size = minibatch // spec.meta.devices
        self.optimiser = Optimiser(self.net.optimizer)
        self.dtype = jnp.dtype(spec.meta.precision)
        self.storage = jnp.dtype(spec.meta.storage)
        self.slots = worlds.slots(env, self.settings.time_horizon)

    def hyper(self, spec: Spec) -> Hyper:
        settings = spec.agent.algorithm
        assert isinstance(settings, PpoSpec)
        return Hyper(
            rates_of(spec.agent.net.optimizer),
            jnp.float32(settings.gamma),
            jnp.float32(settings.lam),
            line_of(settings.clip_eps),
            line_of(settings.entropy_coef),
            jnp.float32(settings.val_loss_coef),
            jnp.float32(settings.clip_vloss or 0.0),
            jnp.float32(settings.target_kl or 0.0),
            jnp.float32(spec.env.max_frame),
        )

    def weights(self, rng: np.random.Generator) -> nets.Params:
        actions, inputs = self.env.actions, self.env.observation_shape[0]
        outputs = policies.outputs_of(actions)
        return nets.actor_critic(self.net, rng, inputs, outputs, isinstance(actions, Discrete))

    def init(self, key: Array, weights: nets.Params, axis: Axis) -> State:
        of_worlds, of_play = jax.random.split(key)
        seen = normalise.fresh(self.env.observation_shape) if self.spec.env.normalize_obs else None
        returns = normalise.fresh_returns(self.spec.env.num_envs)
        mind = Mind(self.optimiser.init(weights), returns, of_play, jnp.int32(0))
        started = worlds.begin(self.env, own_key(axis, of_worlds), self.local)
        return State(Policy(weights, seen), mind, Played(started, jnp.zeros(self.local)))

    def update(self, state: State, hyper: Hyper, axis: Axis) -> tuple[State, Report]:
        """One rollout and what is learnt from it."""
        key, of_play, of_order = jax.random.split(state.mind.key, 3)
        after, steps, cuts, tally = self.rollout(state, own_key(axis, of_play))
        ends = (steps.reward, steps.terminated, steps.truncated)
        after, recorded, ended = worlds.account(after, *ends, steps.facts, axis)
        samples, running, rewards = self.judged(state, steps, cuts, after.observation, hyper, axis)
        frame = (state.mind.update + 1).astype(jnp.float32) * self.frames
        learnt = self.learn(state, samples, own_key(axis, of_order), hyper, frame, axis)
        params, memory, reports, taken = learnt
        seen = state.policy.seen
        if seen is not None:
            seen = normalise.learn(seen, flat(steps.observation), axis)
        found, maxima = worlds.told(tally, self.settings.time_horizon, axis)
        means: dict[str, Array] = dict(zip(REPORTED, reports, strict=True))
        means["optim/lr"] = hyper.rates.lr * left_of(hyper.rates, frame, hyper.budget)
        mind = Mind(memory, rewards, key, state.mind.update + 1)
        state = State(Policy(params, seen), mind, Played(after, running))
        return state, Report(means, found, maxima, jnp.int32(1), taken, *ended, recorded)

    def rollout(self, state: State, key: Array) -> tuple[Worlds, Step, Cuts | None, Tally]:
        """Play `time_horizon` steps of every environment; all of their randomness is drawn at once."""
        outputs = policies.outputs_of(self.env.actions)
        bits = jax.random.bits(key, (self.settings.time_horizon, self.local, outputs + 2))
        noise = policies.noise(self.env.actions, bits[..., 2:])
        # Random bits are as good as keys made of others, which would cost as much again.
        keys = jax.random.wrap_key_data(bits[..., :2])
        start: Worlds = state.worlds.worlds
        action = jax.eval_shape(partial(self.play, state.policy), start, noise[0])[1]
        tally = worlds.empty_tally(self.env, start, action)
        cuts = None if self.slots is None else worlds.no_cuts(self.slots, start.observation.astype(self.storage))

        def step(carry: Any, given: tuple[Array, Array]) -> tuple[Any, Step]:
            now, tally, cuts = carry
            action, env_action, mask = self.play(state.policy, now, given[0])
            after, tally, outcome = worlds.step(self.env, now, tally, env_action, given[1])
            successor = jnp.zeros((len(action), 0))
            if cuts is None:
                successor = outcome.observation.astype(self.storage)
            else:
                cuts = worlds.keep_cut(cuts, outcome)
            ends = (outcome.reward, outcome.terminated, outcome.truncated)
            seen = now.observation.astype(self.storage)
            facts = worlds.recorded_facts(outcome)
            return (after, tally, cuts), Step(seen, mask, action, *ends, successor, facts)

        (after, tally, cuts), steps = lax.scan(step, (start, tally, cuts), (noise, keys))
        return after, steps, cuts, tally

    def play(self, policy: Policy, now: Worlds, noise: Array) -> tuple[Array, Array, Array | None]:
        """An action of every environment, as the policy means it and as the environment takes it, and what is legal."""
        mask = jax.vmap(self.env.mask)(now.env) if self.env.masked else None
        output = policies.only_legal(self.output(policy, now.observation.astype(self.storage)), mask)
        action = policies.sample(self.env.actions, output, noise, policy.params.get("log_std"))
        return action, policies.to_env(self.env.actions, action), mask

    def output(self, policy: Policy, observation: Array) -> Array:
        """Logits or means of stored observations."""
        return nets.policy_output(self.net, policy.params, self.see(policy.seen, observation), self.dtype)

    def see(self, seen: Moments | None, observation: Array) -> Array:
        """Stored observations as the network takes them."""
        return normalise.scaled(seen, observation.astype(jnp.float32), self.spec.env.clip_obs)

    def judged(
        self, state: State, steps: Step, cuts: Cuts | None, last: Array, hyper: Hyper, axis: Axis
    ) -> tuple[Samples, Array, Moments]:
        """A rollout with log-probabilities, values, advantages and targets; and what was learnt of rewards."""
        policy = state.policy
        logp, value = (part.reshape(steps.reward.shape) for part in self.judge_all(policy, steps))
        ahead = self.values_ahead(policy, steps, cuts, last.astype(self.storage), value)
        reward, running, rewards = self.rewards(state, steps, hyper, axis)
        advantage = losses.gae(reward, value, ahead, steps.terminated, steps.truncated, hyper.gamma, hyper.lam)
        mask = None if steps.mask is None else flat(steps.mask)
        rows = flat(jnp.stack([logp, value, advantage], -1))
        return Samples(flat(steps.observation), mask, flat(steps.action), rows), running, rewards

    def judge_all(self, policy: Policy, steps: Step) -> tuple[Array, Array]:
        """Log-probability and value of every step [R], a minibatch at a time."""

        def judge(block: tuple[Array, Array | None, Array]) -> tuple[Array, Array]:
            observation, mask, action = block
            output, value = nets.judge(self.net, policy.params, self.see(policy.seen, observation), self.dtype)
            log_std = policy.params.get("log_std")
            return self.log_prob(output, mask, action, log_std)[0], value

        blocks = jax.tree.map(
            lambda x: flat(x).reshape(-1, self.size, *x.shape[2:]), (steps.observation, steps.mask, steps.action)
        )
        logp, value = lax.map(judge, blocks)
        return logp.reshape(-1), value.reshape(-1)

    def log_prob(self, output: Array, mask: Array | None, action: Array, log_std: Array | None) -> tuple[Array, Array]:
        """Log-probability of each action among the legal ones, and the entropy."""
        legal = policies.only_legal(output, mask)
        return policies.log_prob_and_entropy(self.env.actions, legal, action, log_std)

    def values_ahead(self, policy: Policy, steps: Step, cuts: Cuts | None, last: Array, value: Array) -> Array:
        """The critic's value of each step's true successor."""
        if cuts is None:
            seen = self.see(policy.seen, flat(steps.successor))
            return nets.value_of(self.net, policy.params, seen, self.dtype).reshape(value.shape)
        seen = self.see(policy.seen, jnp.concatenate([last, flat(cuts.observation)]))
        ahead = nets.value_of(self.net, policy.params, seen, self.dtype).reshape(1 + len(cuts.observation), -1)
        return worlds.values_ahead(value, ahead[0], ahead[1:], steps.truncated)

    def rewards(self, state: State, steps: Step, hyper: Hyper, axis: Axis) -> tuple[Array, Array, Moments]:
        """Rewards as they are learnt from, the running returns, and the statistics of those."""
        reward, running, moments = steps.reward, state.worlds.running, state.mind.rewards
        if self.spec.env.normalize_reward:
            over = steps.terminated | steps.truncated
            running, returns = normalise.discounted(running, reward, over, hyper.gamma)
            moments = normalise.learn(moments, flat(returns), axis)
            reward = normalise.scaled_rewards(moments, reward)
        env = self.spec.env
        return normalise.limited(reward, env.normalize_reward, env.clip_reward), running, moments

    def learn(
        self, state: State, samples: Samples, key: Array, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Any, Any, Array, Array]:
        """Epochs of minibatches: new weights, optimiser's memory, mean reports [6], and gradient steps taken."""
        orders = shuffled(key, self.epochs, len(samples.logp))
        left = left_of(hyper.rates, frame, hyper.budget)

        def descend(carry: Any, index: Array) -> tuple[Any, Array]:
            params, memory = carry
            batch = jax.tree.map(lambda x: x[index], samples)
            loss = partial(self.loss, seen=state.policy.seen, batch=batch, hyper=hyper, frame=frame, axis=axis)
            grads, report = jax.grad(loss, has_aux=True)(params)
            grads, report = mean_over(axis, (grads, report))
            params, memory, norm = self.optimiser.step(params, grads, memory, hyper.rates, left)
            return (params, memory), jnp.append(report, norm)

        def epoch(carry: Any, order: Array) -> tuple[Any, tuple[Array, Array]]:
            before, going = carry
            after, reports = lax.scan(descend, before, order.reshape(-1, self.size))
            if self.settings.target_kl is None:
                return (after, going), (reports, jnp.ones(len(reports)))
            kept = jax.tree.map(lambda new, old: jnp.where(going, new, old), after, before)
            taken = jnp.full(len(reports), going, jnp.float32)
            return (kept, going & (reports[-1, 3] <= hyper.target_kl)), (reports, taken)

        start = (state.policy.params, state.mind.optimiser)
        ((params, memory), _), (reports, taken) = lax.scan(epoch, (start, jnp.bool(True)), orders)
        means = jnp.tensordot(taken.reshape(-1), reports.reshape(-1, reports.shape[-1]), 1) / taken.sum()
        return params, memory, means, taken.sum().astype(jnp.int32)

    def loss(
        self, params: Any, seen: Moments | None, batch: Samples, hyper: Hyper, frame: Array, axis: Axis
    ) -> tuple[Array, Array]:
        """Policy loss + value loss - entropy bonus of one minibatch, and what to report of it."""
        clip = hyper.clip.at(frame)
        advantage = batch.advantage
        if self.settings.normalize_advantages == "standardise":
            advantage = losses.standardise(advantage, axis)
        output, value = nets.judge(self.net, params, self.see(seen, batch.observation), self.dtype)
        logp, entropy = self.log_prob(output, batch.mask, batch.action, params.get("log_std"))
        policy_loss = losses.clipped_surrogate(logp, batch.logp, advantage, clip)
        if self.settings.clip_vloss is None:
            value_loss = losses.value_loss(value, batch.target)
        else:
            value_loss = losses.clipped_value_loss(value, batch.value, batch.target, hyper.value_clip)
        bonus = entropy.mean()
        kl, clipped = losses.approximate_kl(logp, batch.logp), losses.clip_fraction(logp, batch.logp, clip)
        total = policy_loss + hyper.value_coef * value_loss - hyper.entropy.at(frame) * bonus
        return total, jnp.stack([policy_loss, value_loss, bonus, kl, clipped])

    def act(
        self, policy: Policy, hyper: Hyper, observation: Array, mask: Array | None, key: Array, way: Array
    ) -> Array:
        output = self.output(policy, observation.astype(self.storage))
        noise = policies.noise(self.env.actions, jax.random.bits(key, output.shape))
        if isinstance(self.env.actions, Discrete):
            legal = policies.only_legal(jnp.where(way == RANDOM, 0.0, output), mask)
            return policies.sample(self.env.actions, legal, jnp.where(way == GREEDY, 0.0, noise), None)
        drawn = output + jnp.exp(policy.params["log_std"]) * jnp.where(way == GREEDY, 0.0, noise)
        # The error function of a normal number is uniform between -1 and 1.
        return jnp.where(way == RANDOM, lax.erf(noise / 2**0.5), drawn)

    def think(self, policy: Policy, observation: Array, mask: Array | None) -> tuple[Array, Array] | None:
        if not isinstance(self.env.actions, Discrete):
            return None
        seen = self.see(policy.seen, observation.astype(self.storage))
        output, value = nets.judge(self.net, policy.params, seen, self.dtype)
        return jax.nn.softmax(policies.only_legal(output, mask)), value

    def arithmetic(self) -> tuple[list[str], int]:
        settings, envs = self.settings, self.spec.env.num_envs
        updates = -(-self.spec.env.max_frame // self.frames)
        minibatch, epochs = settings.scaled(envs)
        each = epochs * (self.frames // minibatch)
        asked = settings.training_epoch, settings.minibatch_size
        lines = [
            f"{updates:,} updates x {self.frames:,} samples ({envs} envs x {settings.time_horizon} steps)"
            f" = {updates * self.frames:,} frames",
            f"each update: {epochs} epochs x {self.frames // minibatch} minibatches of {minibatch:,}"
            f" = {each} gradient steps, {updates * each:,} in all",
        ]
        if (epochs, minibatch) != asked:
            lines.append(
                f"auto_scale made that of {asked[0]} epochs x {self.frames // asked[1]} minibatches of {asked[1]:,};"
                " halve the learning rate whenever the gradient steps of an update double"
            )
        return lines, updates * each


def flat(x: Array) -> Array:
    """Steps and environments [T, N, ...] as rows."""
    return x.reshape(-1, *x.shape[2:])
