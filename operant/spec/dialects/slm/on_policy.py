"""ActorCritic, Reinforce, SARSA and Random, and what SLM-Lab's on-policy algorithms have in common."""

from __future__ import annotations

from operant.spec.dialects.conversion import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.dqn import NET_DROPPED, td_loss
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.schedule import NATIVE, exploration, schedule

PDTYPES = {None: None, "default": None, "Categorical": None, "Normal": None}
NO_TARGET: dict[str, str] = dict.fromkeys(
    ("update_type", "update_frequency", "polyak_coef"), "left out: there is no target net"
)
STEPS, EPISODES = "OnPolicyBatchReplay", "OnPolicyReplay"
NOT_READ = "left out: an on-policy memory does not read it"
MEMORY_DROPPED: dict[str, str] = dict.fromkeys(
    ("batch_size", "max_size", "use_cer", "cross_entropy", "stack_len"), NOT_READ
)


def drawn_actions(settings: Section) -> None:
    """Actions are drawn from the policy: from a Categorical or a Normal."""
    settings.only("action_pdtype", PDTYPES, "has no counterpart: Categorical or Normal")
    settings.only("action_policy", {None: None, "default": None}, "has no counterpart: actions are drawn as they are")


def policy_terms(settings: Section) -> None:
    """The entropy bonus, and the policy loss, whose weight is 1."""
    schedule(settings, "entropy_coef_spec", f"{NATIVE}.entropy_coef", default=0.0)
    settings.only("policy_loss_coef", {1: None}, "has no counterpart: the policy loss has weight 1", default=1)


def unit_of(memory: Section) -> str:
    """What `training_frequency` counts with this memory: STEPS of each environment, or EPISODES."""
    kinds = {STEPS: STEPS, EPISODES: EPISODES}
    unit = memory.only("name", kinds, f"has no counterpart; there are {STEPS} and {EPISODES}", default=STEPS)
    memory.drop(MEMORY_DROPPED)
    memory.close()
    return unit or STEPS


def steps_per_update(settings: Section, memory: Section) -> None:
    """Take over the steps of each environment between updates; there is no counting of episodes."""
    settings.need("training_frequency")
    if unit_of(memory) == EPISODES:
        why = f"counts episodes with {EPISODES}, which has no counterpart: updates come after a number of steps"
        settings.conversion.lose(settings.at("training_frequency"), why)
    else:
        settings.copy("training_frequency", f"{NATIVE}.training_frequency")


def actor_critic_net(net: Section, budget: Budget) -> None:
    """A policy and a value, on one body or on two."""
    nets.layers(net, heads=("actor", "critic"))
    net.copy("shared", "agent.net.shared")
    net.copy("log_std_init", "agent.net.log_std_init")
    loss = net.below("loss_spec")
    loss.only("name", {"MSELoss": None}, "has no counterpart: values learn by MSELoss", default="MSELoss")
    loss.close()
    optim.actor_and_critic(net, budget)
    net.drop({**nets.DROPPED, **NO_TARGET})
    net.close()


A2C_NOT_READ = "left out: SLM-Lab's ActorCritic does not read it"
A2C_DROPPED: dict[str, str] = dict.fromkeys(
    ("explore_var_spec", "center_return", "training_epoch", "training_batch_iter"), A2C_NOT_READ
)
PLAIN_RETURNS = "plain returns, to the end of the batch in SLM-Lab; lam 1 adds the value of what follows"


def a2c(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimisers."""
    settings = agent.below("algorithm")
    settings.conversion.set(f"{NATIVE}.name", "a2c", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    settings.copy("val_loss_coef", f"{NATIVE}.val_loss_coef", default=1.0)
    settings.conversion.set(f"{NATIVE}.normalize_advantages", True, settings.at("name"))
    drawn_actions(settings)
    policy_terms(settings)
    _returns(settings)
    steps_per_update(settings, agent.below("memory"))
    settings.copy("normalize_v_targets", f"{NATIVE}.normalize_v_targets")
    settings.lacks({"symlog": "has no counterpart: a2c has no such setting"}, (False,))
    settings.drop(A2C_DROPPED)
    settings.close()
    actor_critic_net(agent.below("net"), budget)


def _returns(settings: Section) -> None:
    """By `lam` if it is given, else by `num_step_returns`, else plain."""
    if settings.get("lam") is not None:
        settings.copy("lam", f"{NATIVE}.lam")
        settings.drop({"num_step_returns": "left out: SLM-Lab reads it only without lam"})
    elif settings.get("num_step_returns") is not None:
        settings.copy("num_step_returns", f"{NATIVE}.num_step_returns")
    else:
        settings.conversion.set(f"{NATIVE}.lam", 1.0, settings.at("lam"))
        settings.conversion.remark(settings.at("lam"), PLAIN_RETURNS)


NO_CRITIC = "left out: REINFORCE has no critic"
REINFORCE_NET_DROPPED: dict[str, str] = {
    **NO_TARGET,
    **dict.fromkeys(("shared", "use_same_optim", "actor_optim_spec", "critic_optim_spec"), NO_CRITIC),
}


def reinforce(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimiser."""
    settings, net = agent.below("algorithm"), agent.below("net")
    settings.conversion.set(f"{NATIVE}.name", "reinforce", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    drawn_actions(settings)
    policy_terms(settings)
    _episodes(settings, agent.below("memory"), budget)
    settings.drop(
        {
            "center_return": "left out: returns are standardised, as SLM-Lab does in any case",
            "explore_var_spec": "left out: SLM-Lab's Reinforce does not read it",
        }
    )
    settings.close()
    nets.layers(net, heads=("actor",))
    net.copy("log_std_init", "agent.net.log_std_init")
    net.get("loss_spec")  # a policy gradient has no loss to choose
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **REINFORCE_NET_DROPPED})
    net.close()


def _episodes(settings: Section, memory: Section, budget: Budget) -> None:
    """Here an update is made of whole episodes, as many in each environment."""
    settings.need("training_frequency")
    count = settings.whole("training_frequency", 1)
    if unit_of(memory) == EPISODES:
        episodes = count * budget.num_envs
    else:
        episodes = budget.num_envs
        why = f"{count} steps of each environment become one whole episode of each: here no episode is cut"
        settings.conversion.remark(settings.at("training_frequency"), why)
    settings.conversion.set(f"{NATIVE}.training_frequency", episodes, settings.at("training_frequency"))


def sarsa(agent: Section, budget: Budget) -> None:
    """Take over the algorithm, its net and its optimiser."""
    settings, net = agent.below("algorithm"), agent.below("net")
    settings.conversion.set(f"{NATIVE}.name", "sarsa", settings.at("name"))
    settings.need("gamma")
    settings.copy("gamma", f"{NATIVE}.gamma")
    exploration(settings)
    steps_per_update(settings, agent.below("memory"))
    settings.close()
    td_loss(net)
    nets.layers(net, heads=("critic",))
    optim.one_optimiser(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED, **NO_TARGET})
    net.close()


def random(agent: Section, budget: Budget) -> None:
    """Random play; whatever is said about learning changes nothing."""
    settings = agent.below("algorithm")
    settings.conversion.set(f"{NATIVE}.name", "random", settings.at("name"))
    for section in (settings, agent.below("memory"), agent.below("net")):
        section.drop(dict.fromkeys(section.unread(), "left out: random play does not read it"))
