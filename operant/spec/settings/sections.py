"""The sections of a spec (env, agent, meta), and all of its settings together, each valid by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, model_validator

from operant.spec.fields import Closed, fixed, free, section
from operant.spec.registry import OneOf
from operant.spec.settings.algorithms import ALGORITHMS, Algorithm, PpoSpec
from operant.spec.settings.language import ModelSpec, PlainData, RaySpec, TextSpec
from operant.spec.settings.launch import LaunchSpec
from operant.spec.settings.memories import MEMORIES, Memory
from operant.spec.settings.nets import NETS, MlpSpec, Net
from operant.spec.settings.search import Sampler, SearchResourcesSpec, SearchSchedulerSpec
from operant.spec.settings.trackers import TRACKERS, AnyForm, TrackerSpec, each_once, listed

AlgorithmSpec = Annotated[Algorithm, OneOf(ALGORITHMS)]
NetSpec = Annotated[Net, OneOf(NETS, tag="type")]
MemorySpec = Annotated[Memory, OneOf(MEMORIES)]
Trackers = Annotated[
    tuple[Annotated[TrackerSpec, OneOf(TRACKERS)], ...], BeforeValidator(listed), AfterValidator(each_once), AnyForm()
]
ONLY_JAX = ("HackMatrix-v0", "gymnax:", "brax:", "playground/", "mjx/")
EARLIER_ENGINES = {"deep": "torch", "fused": "jax"}
"""The names that engines had, which specs and runs made then still say."""
MAX_SEED = 2**31 - 1
MAX_ENVS = 2**20


def _engine_today(value: Any) -> Any:
    """The name of an engine, where an older spec has an earlier one."""
    return EARLIER_ENGINES.get(value, value) if isinstance(value, str) else value


Engine = Annotated[Literal["auto", "torch", "jax", "language"], BeforeValidator(_engine_today)]


class EnvSpec(Closed):
    """The problem and how much of it to play."""

    name: str = fixed(
        "weights, statistics and environments are those of the problem",
        default="CartPole-v1",
        min_length=1,
        max_length=200,
        description="Gymnasium id, `module:id`, or the import path of a class.",
    )
    num_envs: int = fixed(
        "the state of each environment is kept",
        default=4,
        ge=1,
        le=MAX_ENVS,
        description="Environments stepped together.",
    )
    max_frame: int = free(
        default=100_000, ge=1, le=10**12, description="Budget: environment steps summed over all environments."
    )
    max_t: int | None = fixed(
        "the problem would be another one",
        default=None,
        ge=1,
        le=10**9,
        description="Time limit of an episode in steps; null for the environment's own.",
    )
    normalize_obs: bool = fixed(
        "the network reads observations on this scale",
        default=False,
        description="Standardise observations by running statistics, saved with the policy.",
    )
    normalize_reward: bool = fixed(
        "values are of rewards on this scale",
        default=False,
        description="Scale rewards by the running deviation of the discounted return.",
    )
    clip_obs: float = fixed(
        "the network reads observations within this limit",
        default=10.0,
        gt=0,
        le=1e6,
        description="Limit of normalised observations.",
    )
    reward_scale: float = fixed(
        "values are of rewards on this scale",
        default=1.0,
        gt=0,
        le=1e6,
        description="Multiplies the rewards learnt from, never the score; ppo of the jax engine.",
    )
    clip_reward: float | None = fixed(
        "values, and the rewards in a replay, are of rewards within this limit",
        default=None,
        gt=0,
        le=1e6,
        description="Limit of the rewards learnt from; null for none, or for 10 with normalize_reward.",
    )
    vectorization: Literal["auto", "serial", "processes"] = free(
        default="auto",
        description="How environments are stepped: one after another or in worker processes, to the same bits. With the"
        " jax engine both say that they step on the host, and auto compiles those that have a form in JAX.",
    )
    kwargs: PlainData = fixed(
        "the problem would be another one",
        default_factory=dict,
        description="Arguments for the environment's constructor.",
    )
    text: TextSpec | None = fixed(
        "the problem would be another one", default=None, description="The language task, of language algorithms."
    )


class AgentSpec(Closed):
    """The learner: algorithm, network or language model and, for off-policy algorithms, memory."""

    algorithm: AlgorithmSpec = section(default_factory=PpoSpec, description="Algorithm and its settings.")
    net: NetSpec = section(default_factory=MlpSpec, description="Network and optimiser.")
    memory: MemorySpec | None = fixed(
        "what a run remembers is kept as this memory",
        default=None,
        description="Replay memory; off-policy algorithms have `replay` by default.",
    )
    model: ModelSpec | None = fixed(
        "the weights are those of the model", default=None, description="The language model, of language algorithms."
    )

    @model_validator(mode="before")
    @classmethod
    def _give_defaults(cls, data: Any) -> Any:
        return with_default_model(with_default_memory(data))


class MetaSpec(Closed):
    """Seeds, records and resources."""

    max_session: int = fixed(
        "a fork has the sessions of its parent",
        default=4,
        ge=1,
        le=1024,
        description="Sessions of a trial, one seed each.",
    )
    seed: int = fixed(
        "a fork goes on with the random streams of its parent",
        default=0,
        ge=0,
        le=MAX_SEED,
        description="Seed of session 0; session k uses seed + k.",
    )
    log_frequency: int = free(default=1000, ge=1, le=10**12, description="Frames between metric rows.")
    eval_frequency: int = free(default=10_000, ge=1, le=10**12, description="Frames between evaluations.")
    save_frequency: int = free(default=10_000, ge=1, le=10**12, description="Frames between checkpoints.")
    save_minutes: float | None = free(
        default=None, gt=0, le=1e6, description="Save also when so many minutes have passed since the last checkpoint."
    )
    eval_episodes: int = free(
        default=10, ge=1, le=100_000, description="Greedy episodes of one evaluation during training."
    )
    final_episodes: int = free(default=100, ge=1, le=100_000, description="Greedy episodes of the final evaluation.")
    eval_seed: int = fixed(
        "its parent kept these seeds, and no others, out of training",
        default=1_000_000,
        ge=0,
        le=MAX_SEED,
        description="First seed of the fixed evaluation seeds, which no training episode has.",
    )
    keep_checkpoints: int = free(
        default=2, ge=1, le=100_000, description="Newest checkpoints kept, beside the best one."
    )
    sync: str | None = free(
        default=None,
        min_length=1,
        description="Store that the run is pushed to while it trains: s3://BUCKET/PREFIX, hf://OWNER/REPO or a folder.",
    )
    sync_delete: bool = free(default=False, description="Remove from that store what is pruned here.")
    threads: int | None = free(
        default=None, ge=1, le=1024, description="CPU threads per session; null for one, the quickest for small nets."
    )
    processes: int = free(
        default=1,
        ge=1,
        le=64,
        description="Processes of a session that share every minibatch: of PPO and A2C, which share environments too, "
        "and of language models, whose weights are spread over them.",
    )
    device: Literal["auto", "cpu", "cuda"] = free(default="cpu", description="Where the networks are computed.")
    precision: Literal["float32", "bfloat16"] = free(
        default="float32", description="Of the networks' arithmetic in updates; weights are float32 always."
    )
    compile: bool = free(default=False, description="Compile the networks for updates; needs a C++ compiler.")
    devices: int = free(
        default=1, ge=1, le=1024, description="Devices that share environments and minibatches; jax engine."
    )
    storage: Literal["float32", "bfloat16"] = fixed(
        "observations in a replay are kept in this precision",
        default="float32",
        description="Of observations as they are kept to learn from; jax engine.",
    )
    cluster: Literal["none", "ray"] = free(
        default="none", description="Where completions are generated and verified: here, or by actors of Ray."
    )
    price_per_hour: float | None = free(
        default=None,
        ge=0,
        le=1e6,
        description="Dollars that an hour of a machine costs, for the cost of the run; null where it is not known.",
    )
    ray: RaySpec = section(default_factory=RaySpec, description="Actors and their resources, under Ray.")
    launch: LaunchSpec = section(default_factory=LaunchSpec, description="Where `operant launch` runs the spec.")
    stall_seconds: float = free(
        default=120.0,
        gt=0,
        le=86_400,
        description="Report who waits for whom after so long without a heartbeat; after 5 times that the run stops.",
    )
    max_trial: int = free(
        default=16, ge=1, le=1_000_000, description="Trials of a search, one setting each; of pbt its population."
    )
    search_sampler: Sampler = free(
        default="tpe", description="How a search draws settings: Optuna's samplers, or every point of a grid in turn."
    )
    search_scheduler: SearchSchedulerSpec | None = free(
        default=None, description="Early stopping in a search; null trains every trial to the end."
    )
    search_resources: SearchResourcesSpec = section(
        default_factory=SearchResourcesSpec, description="Cores and GPUs of one trial of a search."
    )
    search_keep: int = free(
        default=3,
        ge=1,
        le=1_000_000,
        description="Finished trials of a search that keep their checkpoints, best first.",
    )
    track: Trackers = free(
        default=(),
        description="Trackers that curves, episodes and videos are copied to: names, or settings by name. "
        "See `operant help tracker`.",
    )


class SpecFields(Closed):
    """The settings of one experiment, before any is held against another."""

    name: str = free(
        default="unnamed",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        max_length=100,
        description="Names the run directory; letters, digits, dots, dashes and underscores.",
    )
    engine: Engine = fixed(
        "each engine has checkpoints of its own",
        default="auto",
        description="PyTorch on Gymnasium (torch), one compiled program of JAX (jax), or language models (language); "
        "`auto` goes by the environment and the algorithm.",
    )
    env: EnvSpec = section(default_factory=EnvSpec, description="The problem and how much of it to play.")
    agent: AgentSpec = section(default_factory=AgentSpec, description="The learner.")
    meta: MetaSpec = section(default_factory=MetaSpec, description="Seeds, records and resources.")
    search: dict[str, Any] | None = free(default=None, description="Distributions to search over, by dotted path.")

    @property
    def engine_name(self) -> str:
        """The engine that runs this: the one named, or the one that has such problems."""
        if self.engine != "auto":
            return self.engine
        engine = self.agent.algorithm.engine()
        return "jax" if engine == "torch" and self.env.name.startswith(ONLY_JAX) else engine


def with_default_memory(agent: Any) -> Any:
    """`agent` as given, with the default memory where its algorithm needs one and none is named."""
    algorithm = _algorithm_in(agent)
    if algorithm is None or not algorithm.USES_MEMORY or agent.get("memory") is not None:
        return agent
    return {**agent, "memory": {"name": algorithm.MEMORY}}


def with_default_model(agent: Any) -> Any:
    """`agent` as given, with the default language model where its algorithm trains one and none is named."""
    algorithm = _algorithm_in(agent)
    if algorithm is None or algorithm.engine() != "language" or agent.get("model") is not None:
        return agent
    return {**agent, "model": {}}


def _algorithm_in(agent: Any) -> type[Algorithm] | None:
    """The algorithm that an agent's section names, if there is such a one."""
    if not isinstance(agent, Mapping):
        return None
    return ALGORITHMS.get(OneOf(ALGORITHMS).name_in(agent.get("algorithm", {})) or "")
