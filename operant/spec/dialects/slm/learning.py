"""How an algorithm learns: its name, schedules and exploration; on policy its rollouts, returns and values."""

from __future__ import annotations

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.slm.sizes import sizes_of
from operant.spec.dialects.table import Function

NATIVE = "agent.algorithm"
NAMES = {
    "PPO": "ppo", "PPOSIL": "ppo_sil", "ActorCritic": "a2c", "SIL": "sil", "Reinforce": "reinforce", "SARSA": "sarsa",
    "VanillaDQN": "dqn", "DQN": "dqn", "DoubleDQN": "dqn", "SoftActorCritic": "sac", "CrossQ": "crossq",
    "Random": "random",
}  # fmt: skip
PPO, A2C, SIL = ("PPO", "PPOSIL"), ("ActorCritic", "SIL"), ("SIL", "PPOSIL")
CRITICS = (*PPO, *A2C)  # a policy and values, each with a net and an optimiser unless they share them
DQN, SOFT = ("VanillaDQN", "DQN", "DoubleDQN"), ("SoftActorCritic", "CrossQ")
ALWAYS = {
    **{name: {"normalize_advantages": True} for name in A2C},
    **{name: {"double": True} for name in DQN},
    "VanillaDQN": {"double": False, "target_update": 1},
}
NAMESAKES = {
    "DQN": "SLM-Lab's DQN selects with the online net, which is Double DQN; `double: false` is the plain one",
    "VanillaDQN": "it has no target net: here the target is copied after every round, so it is at most one round old",
}


def algorithm(section: Section, key: str) -> None:
    """The native algorithm, and what is always so in SLM-Lab's of that name."""
    name = section.conversion.kind
    section.set(key, f"{NATIVE}.name", NAMES[name], NAMESAKES.get(name, ""))
    for setting, value in ALWAYS.get(name, {}).items():
        section.set(key, f"{NATIVE}.{setting}", value)


NO_SCHEDULE = "has no counterpart: a schedule here is a number or a straight line"


def scheduled(native: str, default: float | None = None, least: float = 0.0) -> Function:
    """Takes over a schedule as this setting; `default` is what its absence means, `least` its end for 0."""

    def schedule(section: Section, key: str) -> None:
        if section.get(key) is None:
            if default is not None:
                section.set(key, native, default)
            return
        given = section.below(key)
        kind, start, end = given.need("name"), given.need("start_val"), given.get("end_val")
        begin, finish = given.whole("start_step", 0), given.whole("end_step", 0)
        if kind == "no_decay" and end in (None, 0, start):
            given.set("start_val", native, start)
        elif kind == "no_decay":
            given.set("end_val", native, end)
            given.remark("start_val", "left out: SLM-Lab's no_decay is at end_val from the start")
        elif kind == "linear_decay":
            _line(given, native, begin, finish, least)
        elif kind is not None:
            given.lose("name", NO_SCHEDULE)

    return schedule


def _line(given: Section, native: str, begin: int, finish: int, least: float) -> None:
    start, end = given.get("start_val"), given.need("end_val")
    if start == end or finish <= begin:
        given.set("end_val", native, end)
        return
    given.set("start_val", f"{native}.start", start)
    given.set("end_val", f"{native}.end", least if end == 0 else end)
    if begin:
        given.set("start_step", f"{native}.begin", begin)
    given.set("end_step", f"{native}.frames", finish - begin)
    if end == 0:
        why = f"the value does end at {least:g} here; SLM-Lab takes a 0 for start_val and stays there"
        given.remark("end_val", why)
    elif is_number(start) and is_number(end) and end > start:
        why = "the value does rise here; SLM-Lab's linear_decay begins at the higher end"
        given.remark("end_val", why)


NO_SUCH_POLICY = "has no counterpart in this version; there are epsilon_greedy and boltzmann"


def exploration(section: Section, key: str) -> None:
    """The policy and its variable: epsilon, or the temperature of a Boltzmann policy."""
    policy = section.get(key)
    if policy not in ("epsilon_greedy", "boltzmann"):
        if policy is not None:
            section.lose(key, NO_SUCH_POLICY)
        section.drop({"explore_var_spec": "left out with its action policy: epsilon is the native default"})
        return
    section.need("explore_var_spec")
    if policy == "boltzmann":
        section.set(key, f"{NATIVE}.exploration", "boltzmann")
    scheduled(f"{NATIVE}.{'temperature' if policy == 'boltzmann' else 'epsilon'}")(section, "explore_var_spec")


STEPS, EPISODES, ELITE = "OnPolicyBatchReplay", "OnPolicyReplay", "OnPolicyCrossEntropy"


def on_policy_memory(section: Section, key: str) -> None:
    """Whether updates come after steps or after whole episodes, and of the latter which are learnt from."""
    known = (STEPS, EPISODES, ELITE) if section.conversion.kind == "Reinforce" else (STEPS, EPISODES)
    section.only(key, (None, *known))
    share = section.get("cross_entropy", 1.0)
    if section.get(key) != ELITE:
        section.drop({"cross_entropy": "left out: only OnPolicyCrossEntropy reads it"})
    elif is_number(share) and 0 < share < 1:
        section.set("cross_entropy", f"{NATIVE}.elite_fraction", round(1 - share, 6))
        why = f"the episodes above the {share:g} quantile of their rewards are learnt from, {1 - share:g} of them"
        section.remark("cross_entropy", why)


def _counts_episodes(section: Section) -> bool:
    """Whether the spec's memory counts episodes."""
    return section.conversion.their("agent.memory.name") in (EPISODES, ELITE)


def rollout(section: Section, key: str) -> None:
    """What one update is made of: steps of each environment, or whole episodes of all."""
    count, envs = _rollout_length(section, key), sizes_of(section.conversion).all_envs
    steps, episodes = "training_frequency", "training_episodes"
    if section.conversion.kind == "Reinforce":
        steps, episodes = "time_horizon", "training_frequency"
    if not _counts_episodes(section):
        section.set(key, f"{NATIVE}.{steps}", count)
        return
    why = f"{count} x {envs} environments; SLM-Lab counts the episodes of a single one only" if envs > 1 else ""
    section.set(key, f"{NATIVE}.{episodes}", count * envs, why)


def _rollout_length(section: Section, key: str) -> int:
    """`training_frequency`, for which SLM-Lab takes `num_step_returns` where returns are of that many steps."""
    steps = section.get("num_step_returns") if section.conversion.kind in A2C else None
    if steps is None or section.get("lam") is not None:
        section.need(key)
        return section.whole(key, 1)
    length = section.whole("num_step_returns", 1)
    if section.get(key, length) != length:
        why = f"becomes {length}: SLM-Lab trains every num_step_returns, whatever training_frequency says"
        section.remark(key, why)
    return length


PLAIN_RETURNS = "plain returns, to the end of the batch in SLM-Lab; lam 1 adds the value of what follows"


def returns(section: Section, key: str) -> None:
    """By `lam` if it is given, else by `num_step_returns`, else plain."""
    if section.get(key) is not None:
        section.copy(key, f"{NATIVE}.lam")
        section.drop({"num_step_returns": "left out: SLM-Lab reads it only without lam"})
    elif section.get("num_step_returns") is None:
        section.set(key, f"{NATIVE}.lam", 1.0, PLAIN_RETURNS)
    else:
        section.copy("num_step_returns", f"{NATIVE}.num_step_returns")
        if _counts_episodes(section):
            why = "every step has its return here; SLM-Lab gives returns to the first so many of an episode only"
            section.remark("num_step_returns", why)


def horizon(section: Section, key: str) -> None:
    """The rollout and the minibatches of PPO, which SLM-Lab rounds up together to multiples of the environments."""
    conversion, envs = section.conversion, sizes_of(section.conversion).num_envs
    size = section.whole("minibatch_size", 4)
    if _counts_episodes(section):
        why = "counts whole episodes, as SLM-Lab did before its PPO took OnPolicyBatchReplay alone"
        conversion.remark(("agent", "memory", "name"), why)
        rollout(section, "training_frequency")
        section.drop({key: "left out: an update is made of whole episodes"})
        section.set("minibatch_size", f"{NATIVE}.minibatch_size", size)
        return
    section.need(key)
    section.drop({"training_frequency": "left out: SLM-Lab's PPO does not read it"})
    steps, samples = section.whole(key, 1), size
    if steps % envs or size % envs:
        steps, samples = -(-steps // envs) * envs, -(-size // envs) * envs
    samples = _whole_sequences(section, max(1, min(samples, steps * envs)), steps)
    for name, given, taken in ((key, section.whole(key, 1), steps), ("minibatch_size", size, samples)):
        section.set(name, f"{NATIVE}.{name}", taken)
        if given != taken and (name == key or taken % max(steps, 1)):
            section.remark(name, f"becomes {taken}, as SLM-Lab makes it a multiple of num_envs = {envs}")


def _whole_sequences(section: Section, samples: int, steps: int) -> int:
    """The minibatch of a net with memory, which learns from whole rollouts of some environments."""
    conversion, envs = section.conversion, sizes_of(section.conversion).all_envs
    if conversion.their("agent.net.type") != "RecurrentNet" or steps < 1:
        return samples
    rollouts = next(
        count for count in range(1, envs + 1) if envs % count == 0 and (count * steps >= samples or count == envs)
    )
    if rollouts * steps != samples:
        why = f"becomes {rollouts * steps}: a net with memory learns from whole rollouts of {steps} steps"
        section.remark("minibatch_size", why)
    return rollouts * steps


def value_weight(section: Section, key: str) -> None:
    """SLM-Lab halves the squared error of the values that it clips, and only of those; here neither is halved."""
    weight = section.get(key, 1.0)
    if not section.get("clip_vloss") or not is_number(weight):
        section.set(key, f"{NATIVE}.val_loss_coef", weight)
        return
    section.set(key, f"{NATIVE}.val_loss_coef", weight / 2)
    section.remark("clip_vloss", f"val_loss_coef becomes {weight / 2:g}: SLM-Lab halves the value loss that it clips")


LOSSES = {"MSELoss": "mse", "SmoothL1Loss": "huber", "HuberLoss": "huber"}


def value_loss(section: Section, key: str) -> None:
    """The loss of values, which SLM-Lab's PPO does not read where it clips them."""
    clips = section.conversion.kind in PPO and section.conversion.their("agent.algorithm.clip_vloss")
    if clips and section.get(key, "MSELoss") != "MSELoss":
        section.remark(key, "left out: the error of clipped values is squared")
        return
    found = section.only(key, LOSSES, default="MSELoss")
    if found not in (None, "mse"):
        section.set(key, f"{NATIVE}.val_loss", found)


def value_clip(section: Section, key: str) -> None:
    """SLM-Lab clips values by the range of the policy."""
    if not section.get(key):
        return
    clip = section.below("clip_eps_spec")
    if clip.get("name") == "no_decay":
        section.set(key, f"{NATIVE}.clip_vloss", clip.get("end_val") or clip.get("start_val"))
    else:
        section.lose(key, "by a moving clip_eps has no counterpart")


def imitation_steps(section: Section, key: str) -> None:
    """Gradient steps on the replay after each update."""
    section.set(key, f"{NATIVE}.sil_iter", gradient_steps(section, 1))


def gradient_steps(section: Section, absent: int) -> int:
    """How many a round has; `absent` is what the absence of `training_iter` means."""
    batches, repeats = section.whole("training_iter", absent), section.whole("training_batch_iter", 1)
    if repeats > 1:
        why = f"{batches} x {repeats} gradient steps become {batches * repeats}, each on a batch of its own"
        section.remark("training_batch_iter", why)
    return batches * repeats
