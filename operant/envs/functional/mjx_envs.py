"""Gymnasium's MuJoCo tasks as problems of our own form: its models and rules, simulated by MJX.

A policy that was trained here can be played in Gymnasium's environment of the same name: observations, actions,
rewards and endings are those of its version 5 with default arguments. What differs is single precision, the random
numbers of a reset, and a simulation that diverges: here it ends the episode, where MuJoCo resets the model in silence.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from gymnasium import envs
from jax import Array, lax

from operant.envs.functional.env import Continuous, FunctionalEnv, Outcome
from operant.envs.gym import MUJOCO, log_mujoco_warnings
from operant.errors import UsageError

with redirect_stdout(io.StringIO()):  # MJX prints that its CUDA kernels are absent
    mujoco: Any = import_module("mujoco")
    mjx: Any = import_module("mujoco.mjx")

PREFIX = "mjx/"
ASSETS = Path(envs.__file__).parent / "mujoco" / "assets"
LS_ITERATIONS = 8  # MJX computes every step of a line search that it may take; more than these change no trajectory
STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))  # Runge and Kutta's: where, and with which weight

Placed = tuple[Array, Array]  # positions and velocities


class Body(NamedTuple):
    """The state of a task: positions and velocities, the last accelerations, what was sensed, and the steps so far.

    The solver begins at the last accelerations. Sensed is what the simulator told beside positions and velocities.
    """

    qpos: Array
    qvel: Array
    qacc: Array
    sensed: Array
    time: Array


@dataclass(frozen=True)
class Task:
    """One task: its model, and its rules as functions of bodies.

    `place` draws where an episode begins, from a key and the model's own position; `judge` gives reward and health
    of a step from the bodies before and after it, the action and the seconds between; who is unhealthy terminates.
    """

    xml: str
    frame_skip: int
    place: Callable[[Array, Array, int], Placed]
    see: Callable[[Body], Array]
    judge: Callable[[Body, Body, Array, float], tuple[Array, Array]]
    sense: Callable[[Any, Any], Array] = lambda model, data: jnp.zeros(0)
    limit: int = 1000


@dataclass(frozen=True)
class MjxEnv(FunctionalEnv):
    """One task of the table below; None leaves the solver's iterations to the model."""

    name: str
    title: str
    limit: int
    iterations: int | None = None
    ls_iterations: int = LS_ITERATIONS

    @property
    def task(self) -> Task:
        """The rules of this environment."""
        return TASKS[self.title]

    @cached_property
    def _model(self) -> Any:
        log_mujoco_warnings(MUJOCO)
        model = mujoco.MjModel.from_xml_path(str(ASSETS / self.task.xml))
        model.opt.iterations = self.iterations or model.opt.iterations
        model.opt.ls_iterations = self.ls_iterations
        return model

    @cached_property
    def _simulated(self) -> tuple[Any, Any]:
        """The model as MJX has it, and its data before anything moved."""
        with jax.ensure_compile_time_eval():  # it may first be asked for while a program is traced
            model = mjx.put_model(self._model, impl="jax")
            return model, mjx.make_data(model)

    @cached_property
    def observation_shape(self) -> tuple[int, ...]:
        return jax.eval_shape(lambda: self.reset(jax.random.key(0))[1]).shape

    @cached_property
    def actions(self) -> Continuous:
        (low, high), *others = {(float(low), float(high)) for low, high in self._model.actuator_ctrlrange}
        assert not others, "all actuators of a task have the same bounds"
        return Continuous(low, high, (int(self._model.nu),))

    def reset(self, key: Array) -> tuple[Body, Array]:
        model, _ = self._simulated
        qpos, qvel = self.task.place(key, model.qpos0, int(model.nv))
        body = self.at(qpos, qvel)
        return body, self.observe(body)

    def at(self, qpos: Array, qvel: Array) -> Body:
        """The body that begins an episode with these positions and velocities; nothing has been pushed yet."""
        model, data = self._simulated
        qpos, qvel = jnp.asarray(qpos, jnp.float32), jnp.asarray(qvel, jnp.float32)
        sensed = self.task.sense(model, mjx.kinematics(model, data.replace(qpos=qpos, qvel=qvel)))
        return Body(qpos, qvel, jnp.zeros_like(qvel), sensed, jnp.int32(0))

    def step(self, state: Body, action: Array, key: Array) -> tuple[Body, Outcome]:
        action = jnp.clip(action, self.actions.low, self.actions.high)
        move = self._runge_kutta if self._model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4 else self._euler
        moved, _ = lax.scan(lambda body, _: (move(body, action), None), state, None, self.task.frame_skip)
        finite = jnp.isfinite(moved.qpos).all() & jnp.isfinite(moved.qvel).all() & jnp.isfinite(moved.sensed).all()
        moved = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
        after = moved._replace(time=state.time + 1)
        seconds = float(self._model.opt.timestep) * self.task.frame_skip
        reward, healthy = self.task.judge(state, after, action, seconds)
        over = after.time >= self.limit
        return after, Outcome(self.observe(after), jnp.where(finite, reward, 0.0), ~(healthy & finite), over, {})

    def observe(self, state: Body) -> Array:
        return self.task.see(state)

    def _euler(self, body: Body, action: Array) -> Body:
        model, data = self._simulated
        data = data.replace(qpos=body.qpos, qvel=body.qvel, qacc_warmstart=body.qacc, ctrl=action)
        data = mjx.step(model, data)
        sensed = self.task.sense(model, data)
        return Body(data.qpos, data.qvel, data.qacc_warmstart, sensed, body.time)

    def _runge_kutta(self, body: Body, action: Array) -> Body:
        """One step of the fourth order, as MuJoCo's; its stages are a loop, since MJX would compile each of them."""
        model, data = self._simulated
        data = data.replace(qacc_warmstart=body.qacc, ctrl=action)
        seconds = float(self._model.opt.timestep)

        def stage(now: tuple[Array, ...], weights: Array) -> tuple[tuple[Array, ...], None]:
            speed, push, mean_speed, mean_push, _ = now
            at, weight = weights
            qpos = shifted(body.qpos, at * seconds * speed)
            qvel = body.qvel + at * seconds * push
            here = mjx.forward(model, data.replace(qpos=qpos, qvel=qvel))
            sums = mean_speed + weight * qvel, mean_push + weight * here.qacc
            return (qvel, here.qacc, *sums, self.task.sense(model, here)), None

        none = jnp.zeros_like(body.qvel)
        start = (none, none, none, none, body.sensed)
        (_, qacc, speed, push, sensed), _ = lax.scan(stage, start, jnp.array(STAGES))
        return Body(shifted(body.qpos, seconds * speed), body.qvel + seconds * push, qacc, sensed, body.time)


def shifted(qpos: Array, move: Array) -> Array:
    """Positions after a movement; of a body that is free in space four numbers of `qpos` are its rotation."""
    if len(qpos) == len(move):
        return qpos + move
    angle = jnp.sqrt(jnp.sum(jnp.square(move[3:6])))
    turn = jnp.concatenate([jnp.cos(angle / 2)[None], move[3:6] * jnp.sinc(angle / (2 * math.pi)) / 2])
    rotation = product(qpos[3:7], turn)
    rotation = rotation / jnp.sqrt(jnp.sum(jnp.square(rotation)))
    return jnp.concatenate([qpos[:3] + move[:3], rotation, qpos[7:] + move[6:]])


def product(one: Array, other: Array) -> Array:
    """The product of two quaternions."""
    a, u, b, v = one[0], one[1:], other[0], other[1:]
    return jnp.concatenate([(a * b - u @ v)[None], a * v + b * u + jnp.cross(u, v)])


def near(key: Array, middle: Array, nv: int, *, noise: float, normal: bool = False) -> Placed:
    """Near the model's own position: uniform noise on positions, and uniform or normal noise on velocities."""
    keys = jax.random.split(key)
    qpos = middle + jax.random.uniform(keys[0], middle.shape, minval=-noise, maxval=noise)
    if normal:
        return qpos, noise * jax.random.normal(keys[1], (nv,))
    return qpos, jax.random.uniform(keys[1], (nv,), minval=-noise, maxval=noise)


def before_a_goal(key: Array, middle: Array, nv: int) -> Placed:
    """An arm near its own position, and a goal anywhere in a disc of radius 0.2."""
    keys = jax.random.split(key, 4)
    arm = middle[:2] + jax.random.uniform(keys[0], (2,), minval=-0.1, maxval=0.1)
    radius, angle = 0.2 * jnp.sqrt(jax.random.uniform(keys[1])), 2 * math.pi * jax.random.uniform(keys[2])
    speed = jax.random.uniform(keys[3], (2,), minval=-0.005, maxval=0.005)
    goal = radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    return jnp.concatenate([arm, goal]), jnp.concatenate([speed, jnp.zeros(nv - 2)])


def whole(body: Body, *, hidden: int = 0, fastest: float = math.inf) -> Array:
    """Positions but for the first `hidden`, velocities up to `fastest`, and what was sensed."""
    return jnp.concatenate([body.qpos[hidden:], jnp.clip(body.qvel, -fastest, fastest), body.sensed])


def of_double_pendulum(body: Body) -> Array:
    """The cart's place, sines and cosines of both angles, velocities, and the force of the rail's ends."""
    angles = body.qpos[1:]
    force = jnp.clip(body.sensed[2:], -10, 10)
    return jnp.concatenate([body.qpos[:1], jnp.sin(angles), jnp.cos(angles), jnp.clip(body.qvel, -10, 10), force])


def of_reacher(body: Body) -> Array:
    """Cosines and sines of both angles, the goal, the angles' velocities, and the way from the goal to the tip."""
    angles = body.qpos[:2]
    return jnp.concatenate([jnp.cos(angles), jnp.sin(angles), body.qpos[2:], body.qvel[:2], body.sensed[:2]])


def of_ant(body: Body) -> Array:
    """Positions but for the place on the ground, velocities, and the forces on every part."""
    return jnp.concatenate([body.qpos[2:], body.qvel, body.sensed[1:]])


def forward(
    before: Body,
    after: Body,
    action: Array,
    seconds: float,
    *,
    control: float,
    alive: float = 0.0,
    healthy: Callable[[Body], Array] = lambda body: jnp.bool_(True),
) -> tuple[Array, Array]:
    """The speed along x, less what control costs, and a reward for being healthy."""
    well = healthy(after)
    speed = (after.qpos[0] - before.qpos[0]) / seconds
    return speed + alive * well - control * jnp.sum(jnp.square(action)), well


def ant(before: Body, after: Body, action: Array, seconds: float) -> tuple[Array, Array]:
    """As `forward`, with the torso's place as it was sensed, and a cost of contacts."""
    well = (after.qpos[2] >= 0.2) & (after.qpos[2] <= 1.0)
    cost = 0.5 * jnp.sum(jnp.square(action)) + 5e-4 * jnp.sum(jnp.square(after.sensed[1:]))
    return (after.sensed[0] - before.sensed[0]) / seconds + well - cost, well


def upright(before: Body, after: Body, action: Array, seconds: float) -> tuple[Array, Array]:
    """1 for every step on which the pole leans by no more than 0.2."""
    well = jnp.abs(after.qpos[1]) <= 0.2
    return well.astype(jnp.float32), well


def double_pendulum(before: Body, after: Body, action: Array, seconds: float) -> tuple[Array, Array]:
    """10 while the tip is above 1, less its distance from the highest point and the speed of both poles."""
    x, z, _ = after.sensed
    well = z > 1
    distance = 0.01 * x**2 + (z - 2) ** 2
    return 10.0 * well - distance - 0.001 * after.qvel[1] ** 2 - 0.005 * after.qvel[2] ** 2, well


def reacher(before: Body, after: Body, action: Array, seconds: float) -> tuple[Array, Array]:
    """Less the distance from the goal, and what control costs."""
    distance = jnp.sqrt(jnp.sum(jnp.square(after.sensed)))
    return -distance - jnp.sum(jnp.square(action)), jnp.bool_(True)


def hops(body: Body) -> Array:
    """High enough, nearly upright, and nothing out of bounds."""
    others = jnp.concatenate([body.qpos[2:], body.qvel])
    return (body.qpos[1] > 0.7) & (jnp.abs(body.qpos[2]) < 0.2) & (jnp.abs(others) < 100).all()


def walks(body: Body) -> Array:
    """Neither fallen nor flown, and not bent over."""
    return (body.qpos[1] > 0.8) & (body.qpos[1] < 2.0) & (jnp.abs(body.qpos[2]) < 1.0)


def sense_ant(model: Any, data: Any) -> Array:
    """Where the torso is along x, and the forces on every part but the ground, each between -1 and 1."""
    forces = mjx.rne_postconstraint(model, data)._impl.cfrc_ext[1:]
    return jnp.concatenate([data.xpos[1, :1], jnp.clip(forces, -1, 1).ravel()])


def sense_double_pendulum(model: Any, data: Any) -> Array:
    """Where the tip is along x and z, and the force of constraints on the cart."""
    return jnp.stack([data.site_xpos[0, 0], data.site_xpos[0, 2], data.qfrc_constraint[0]])


def sense_reacher(model: Any, data: Any) -> Array:
    """The way from the goal to the tip; they are the last two bodies of the model."""
    return data.xpos[-2] - data.xpos[-1]


_slight, _wide, _normal = (
    partial(near, noise=0.005),
    partial(near, noise=0.1),
    partial(near, noise=0.1, normal=True),
)
_runner = partial(whole, hidden=1, fastest=10.0)

TASKS = {
    "Ant-v5": Task("ant.xml", 5, _normal, of_ant, ant, sense_ant),
    "HalfCheetah-v5": Task("half_cheetah.xml", 5, _normal, partial(whole, hidden=1), partial(forward, control=0.1)),
    "Hopper-v5": Task("hopper.xml", 4, _slight, _runner, partial(forward, control=1e-3, alive=1.0, healthy=hops)),
    "InvertedDoublePendulum-v5": Task(
        "inverted_double_pendulum.xml", 5, _normal, of_double_pendulum, double_pendulum, sense_double_pendulum
    ),
    "InvertedPendulum-v5": Task("inverted_pendulum.xml", 2, partial(near, noise=0.01), whole, upright),
    "Reacher-v5": Task("reacher.xml", 2, before_a_goal, of_reacher, reacher, sense_reacher, limit=50),
    "Swimmer-v5": Task("swimmer.xml", 4, _wide, partial(whole, hidden=2), partial(forward, control=1e-4)),
    "Walker2d-v5": Task(
        "walker2d_v5.xml", 4, _slight, _runner, partial(forward, control=1e-3, alive=1.0, healthy=walks)
    ),
}


def names() -> list[str]:
    """Every task of Gymnasium that is here."""
    return sorted(TASKS)


def make(name: str, limit: int | None, settings: dict[str, Any]) -> MjxEnv:
    """The environment that Gymnasium calls `name`; `settings` may bound the iterations of MuJoCo's solver."""
    for key, value in settings.items():
        if key not in ("iterations", "ls_iterations") or not isinstance(value, int) or value < 1:
            raise UsageError(
                f"env.kwargs: {PREFIX}{name} cannot be made with {key}: {value!r}",
                remedy="it takes iterations and ls_iterations, counts of the solver",
            )
    env = MjxEnv(f"{PREFIX}{name}", name, limit or TASKS[name].limit, **settings)
    _ = env._simulated  # made once, before anything is traced
    return env
