"""The `rl` files of prime-rl, of today's form and of the one that air-agent used, translated to native specs.

Batches count completions there as here. Servers, transports and placement decide how fast a run is and not what it
learns, so they are left out, each key with the reason. A file says its model and environments once for three programs.
"""

from __future__ import annotations

from typing import Any

from operant.spec.dialects.conversion import Section, converter, has_shape
from operant.spec.dialects.prime_rl_env import environments
from operant.spec.dialects.prime_rl_trainer import trainer

LAB = "prime-rl"
BATCH, GROUP, EVAL_INTERVAL = 128, 1, 100
PLACES = "left out: it places work on devices; -s meta.processes=N shares a model among processes"
RECORDS = "left out: what a run records lies in its directory"
SERVER = "left out: the built-in generator shares the trainer's device and weights"
TRANSPORT = "left out: the generator reads the trainer's weights, so there is nothing to send"
FLOW = "left out: env.text.dialogue.concurrency says how many rollouts are under way at once"
AGES = ("max_async_level", "max_off_policy_steps")
CREDITS = {"grpo": "dr_grpo", "max_rl": "max_rl"}
SHARED = {
    "output_dir": "left out: say --root DIR",
    "clean": "left out: nothing is ever overwritten",
    "dry_run": "left out: operant check FILE",
    "env_vars": "left out: set them where the command is run",
    "log": RECORDS,
    "monitors": RECORDS,
    "wandb": RECORDS,
    "tokenizer": "left out: the model brings its own tokenizer",
    "inference_gpu_ids": PLACES,
    "trainer_gpu_ids": PLACES,
    "deployment": PLACES,
    "slurm": PLACES,
    "weight_broadcast": TRANSPORT,
    "rollout_transport": TRANSPORT,
    "seq_len": "left out: the model's context is the limit, and env.text.max_tokens that of a completion",
    "inference": SERVER,
}
ORCHESTRATOR = {
    "seq_len": SHARED["seq_len"],
    "concurrency": FLOW,
    "tasks_per_minute": FLOW,
    "workers_per_env": FLOW,
    "use_token_client": "left out: training always uses the sampled tokens",
    "renderer": "left out: agent.model.template says how prompts are formatted",
    "log": RECORDS,
    "wandb": RECORDS,
    "client": SERVER,
    "model": "left out: the model is said once",
    "tokenizer": SHARED["tokenizer"],
}


def recognises(content: Any) -> bool:
    """Whether plain data has the shape of such a file: every one of them has an orchestrator."""
    return has_shape(content, "orchestrator", dict, foreign="agent")


def _sections(top: Section) -> None:
    conversion = top.conversion
    top.copy("name", "name")
    run = top.below("run")
    run.get("name")
    run.drop({"dir": SHARED["output_dir"]})
    run.close()
    orchestrator = top.below("orchestrator")
    batch = _batch(orchestrator)
    steps = max(1, top.whole("max_steps", 1))
    top.need("max_steps")
    conversion.set("env.max_frame", steps * batch, top.at("max_steps"))
    conversion.remark(top.at("max_steps"), f"{steps} steps x {batch} completions = {steps * batch:,} frames")
    _checkpoints(top.below("ckpt"), batch, steps)
    top.lacks({"resume": "has no counterpart: operant resume RUN goes on at a run's checkpoint"})
    _model(top)
    conversion.set("meta.device", "auto", ("orchestrator",))
    conversion.set("meta.max_session", 1, ("orchestrator",))
    _orchestrator(orchestrator, batch, steps)
    trainer(top.below("trainer"))
    top.drop(SHARED)
    top.close()


convert = converter(LAB, _sections)


def _model(top: Section) -> None:
    """The model's name, from the place where it is shared, or from a program's own."""
    model = top.below("model")
    own = top.below("trainer").below("model")
    if model.get("name") is not None:
        model.copy("name", "agent.model.source")
    elif own.get("name") is not None:
        own.copy("name", "agent.model.source")
    else:
        top.conversion.refuse(model.at("name"), "is missing", "the model to train")
    if model.get("name") is not None and own.get("name", model.get("name")) != model.get("name"):
        top.conversion.lose(own.at("name"), "is another model than model.name")
    model.close()


def _batch(orchestrator: Section) -> int:
    """Completions of a step, in groups."""
    conversion = orchestrator.conversion
    if orchestrator.get("token_batch_size") is not None:
        conversion.refuse(
            orchestrator.at("token_batch_size"), "has no counterpart: batches count completions", "batch_size"
        )
    older = orchestrator.get("rollouts_per_example") is not None
    key = "rollouts_per_example" if older else "group_size"
    group, batch = orchestrator.whole(key, GROUP), orchestrator.whole("batch_size", BATCH)
    if group < 2:
        conversion.refuse(orchestrator.at(key), "leaves nothing to compare a completion with", "2 or more")
        group = 2
    conversion.set("agent.algorithm.name", "grpo", orchestrator.at("algo"))
    conversion.set("agent.algorithm.group_size", group, orchestrator.at(key))
    conversion.set("agent.algorithm.batch_size", batch, orchestrator.at("batch_size"))
    said = f"{batch} completions of a step = {batch // group} prompts x {group}"
    conversion.remark(orchestrator.at("batch_size"), said)
    return max(batch, 1)


def _checkpoints(section: Section, batch: int, steps: int) -> None:
    interval = section.get("interval")
    every = steps if interval is None else max(1, section.whole("interval", steps))
    section.conversion.set("meta.save_frequency", every * batch, section.at("interval"))
    section.conversion.set("meta.log_frequency", batch, section.path)
    if interval is not None:
        section.conversion.remark(section.at("interval"), f"every {every} steps = {every * batch:,} frames")
    section.copy("keep_last", "meta.keep_checkpoints")
    section.drop({"keep_interval": "left out: the newest checkpoints and the best one are kept"})
    section.drop({"resume_step": "left out: operant resume RUN", "weights_only": "left out: every one can be resumed"})
    section.close()


def _orchestrator(section: Section, batch: int, steps: int) -> None:
    """Sampling, credit, filters and environments."""
    train = section.below("train")
    _sampling(section.below("sampling"))
    _sampling(train.below("sampling"))
    _credit(section)
    keeps_all = train.get("filter_zero_advantages", True) is False
    section.conversion.set("agent.algorithm.zero_variance", "keep" if keeps_all else "drop", train.path)
    _evaluation(section.below("eval"), batch, steps)
    _staleness(section)
    environments(section, train)
    train.close()
    _buffer(section.below("buffer"))
    section.drop(ORCHESTRATOR)
    section.close()


def _staleness(section: Section) -> None:
    """How far the generator may be behind: by the steps that it runs ahead, and by the age of rollouts that count."""
    found = [(section.whole(key, 0), key) for key in AGES if section.get(key) is not None]
    if not found:
        return
    allowed, key = min(found)
    section.conversion.set("agent.algorithm.staleness", allowed, section.at(key))
    for _, other in (each for each in found if each[1] != key):
        section.conversion.remark(
            section.at(other), f"an upper limit, which holds: {key} is no more, and is the staleness"
        )


def _sampling(section: Section) -> None:
    section.copy("temperature", "agent.algorithm.temperature")
    for key in ("max_completion_tokens", "max_tokens"):
        section.copy(key, "env.text.max_tokens")
    section.lacks({"extra_body": "has no counterpart: temperature, top_p and top_k say how tokens are sampled"}, ({},))
    section.lacks({"repetition_penalty": "has no counterpart"}, (1,))
    section.lacks({"min_tokens": "has no counterpart"}, (0,))
    section.copy("top_p", "agent.algorithm.top_p")
    if section.get("top_k", -1) != -1:
        section.copy("top_k", "agent.algorithm.top_k")
    section.drop({"seed": "left out: completions are sampled from the run's seed, each differently"})
    section.close()


def _credit(section: Section) -> None:
    """Rewards less their group's mean, not divided by their deviation, unless an algorithm says otherwise."""
    conversion, algo, advantage = section.conversion, section.get("algo", "grpo"), section.below("advantage")
    name, at = algo, section.at("algo")
    if isinstance(algo, dict):
        inner = section.below("algo")
        key = "type" if "type" in algo else "name"
        name, at = inner.get(key, "grpo"), inner.at(key)
        inner.lacks({"length_penalty": "has no counterpart: rewards are as verified"})
        inner.close()
    if isinstance(name, str) and name in CREDITS:
        conversion.set("agent.algorithm.credit", CREDITS[name], at)
        conversion.set("agent.algorithm.scale", "none", at)
    else:
        conversion.lose(at, f"has no counterpart: there are {', '.join(CREDITS)}")
    advantage.lacks({"length_weighted_mean": "has no counterpart: a group's mean counts completions"}, (False,))
    advantage.lacks({"type": "has no counterpart"}, ("default",))
    advantage.close()


def _evaluation(section: Section, batch: int, steps: int) -> None:
    """The same held-out problems every so often."""
    every = section.whole("interval", EVAL_INTERVAL) if section.data else steps
    section.conversion.set("meta.eval_frequency", max(1, every) * batch, section.at("interval"))
    if section.data:
        section.conversion.remark(section.at("interval"), f"every {every} steps = {every * batch:,} frames")
    section.copy("num_examples", "meta.eval_episodes")
    once = "left out: an evaluation answers each problem once, greedily"
    section.drop({"group_size": once, "rollouts_per_example": once, "sampling": once})
    held_out = "left out: evaluations take held-out problems of the tasks that are trained on"
    section.drop({"source": held_out, "env": held_out})
    section.drop({"skip_first_step": "left out: a policy is always evaluated before it learns"})
    section.close()


def _buffer(section: Section) -> None:
    section.drop({"seed": "left out: the run's seed orders the problems"})
    filtering = section.get("online_difficulty_filtering")
    if filtering:
        section.conversion.set("agent.algorithm.zero_variance", "resample", section.at("online_difficulty_filtering"))
        said = "groups whose rewards are all equal are replaced by others"
        section.conversion.remark(section.at("online_difficulty_filtering"), said)
    section.get("env_ratios")
    pools = ("easy_threshold", "hard_threshold", "easy_fraction", "hard_fraction")
    section.lacks(dict.fromkeys(pools, "has no counterpart: problems are not sorted into pools"))
    section.close()
