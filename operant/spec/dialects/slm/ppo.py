"""PPO."""

from __future__ import annotations

from operant.spec.dialects.slm import net as nets
from operant.spec.dialects.slm import optim
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.ledger import Section
from operant.spec.dialects.slm.schedule import schedule

NATIVE = "agent.algorithm"
NOT_READ = "left out: SLM-Lab's PPO does not read it"
DROPPED = {
    "clip_val_loss": "left out: a dead key of SLM-Lab, whose real one is clip_vloss",
    **dict.fromkeys(
        ("explore_var_spec", "training_frequency", "training_iter", "num_step_returns", "center_return"), NOT_READ
    ),
}
PDTYPES = {"default": None, "Categorical": None, "Normal": None}
NET_DROPPED = dict.fromkeys(("update_type", "update_frequency", "polyak_coef"), "left out: PPO has no target net")


def ppo(agent: Section, budget: Budget) -> None:
    """Take over PPO, its net and its optimisers."""
    settings = agent.below("algorithm")
    settings.ledger.set(f"{NATIVE}.name", "ppo", settings.at("name"))
    _settings(settings, budget)
    settings.drop(DROPPED)
    settings.close()
    _memory(agent.below("memory"))
    _net(agent.below("net"), budget)


def _settings(settings: Section, budget: Budget) -> None:
    for key in ("gamma", "lam", "time_horizon", "training_epoch", "clip_eps_spec"):
        settings.need(key)
    for key in ("gamma", "lam", "time_horizon", "training_epoch"):
        settings.copy(key, f"{NATIVE}.{key}")
    settings.copy("minibatch_size", f"{NATIVE}.minibatch_size", default=4)
    settings.copy("val_loss_coef", f"{NATIVE}.val_loss_coef", default=1.0)
    schedule(settings, "clip_eps_spec", f"{NATIVE}.clip_eps")
    schedule(settings, "entropy_coef_spec", f"{NATIVE}.entropy_coef", default=0.0)
    settings.only("action_pdtype", {None: None, **PDTYPES}, "has no counterpart: Categorical or Normal")
    settings.only("action_policy", {None: None, "default": None}, "has no counterpart: PPO samples its policy")
    settings.only("policy_loss_coef", {1: None}, "has no counterpart: the policy loss has weight 1", default=1)
    advantages = {"standardize": None, True: None, None: None}
    settings.only("normalize_advantages", advantages, "has no counterpart: advantages are standardised")
    for key in ("normalize_v_targets", "symlog"):
        if settings.get(key):
            settings.ledger.lose(settings.at(key), "has no counterpart in this version")
    _value_clip(settings)
    _horizon(settings, budget)


def _value_clip(settings: Section) -> None:
    """SLM-Lab clips values by the range of the policy."""
    if not settings.get("clip_vloss"):
        return
    clip = settings.below("clip_eps_spec")
    if clip.get("name") == "no_decay":
        settings.ledger.set(f"{NATIVE}.clip_vloss", clip.get("start_val"), settings.at("clip_vloss"))
    else:
        settings.ledger.lose(settings.at("clip_vloss"), "by a moving clip_eps has no counterpart")


def _horizon(settings: Section, budget: Budget) -> None:
    horizon = settings.whole("time_horizon", 1)
    if budget.num_envs > 0 and horizon % budget.num_envs:
        rounded = -(-horizon // budget.num_envs) * budget.num_envs
        settings.ledger.remark(
            settings.at("time_horizon"), f"taken as written; SLM-Lab rounds it up to {rounded}, a multiple of num_envs"
        )


def _memory(memory: Section) -> None:
    """A rollout is all the memory that PPO has."""
    memory.only(
        "name", {"OnPolicyBatchReplay": None}, "has no counterpart for PPO, which learns from OnPolicyBatchReplay"
    )
    memory.drop(dict.fromkeys(("batch_size", "max_size", "use_cer"), "left out: an on-policy memory does not read it"))
    memory.close()


def _net(net: Section, budget: Budget) -> None:
    nets.layers(net)
    net.copy("shared", "agent.net.shared")
    net.copy("log_std_init", "agent.net.log_std_init")
    loss = net.below("loss_spec")
    loss.only("name", {"MSELoss": None}, "has no counterpart for PPO, whose values learn by MSELoss", default="MSELoss")
    loss.close()
    optim.actor_and_critic(net, budget)
    net.drop({**nets.DROPPED, **NET_DROPPED})
    net.close()
