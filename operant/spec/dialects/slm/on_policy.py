"""What SLM-Lab's on-policy algorithms have in common: how a batch is collected, and how actions are drawn."""

from __future__ import annotations

from operant.spec.dialects.ledger import Section
from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.schedule import schedule

NATIVE = "agent.algorithm"
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
        settings.ledger.lose(settings.at("training_frequency"), why)
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
