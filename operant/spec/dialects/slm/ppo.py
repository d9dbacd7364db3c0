"""PPO, and SIL and PPOSIL: ActorCritic and PPO with a replay of whole episodes."""

from __future__ import annotations

from operant.spec.dialects.conversion import Section, is_number
from operant.spec.dialects.slm.dqn import gradient_steps, replay_settings
from operant.spec.dialects.slm.env import Budget
from operant.spec.dialects.slm.on_policy import MEMORY_DROPPED, a2c, actor_critic_net, drawn_actions, policy_terms
from operant.spec.dialects.slm.schedule import NATIVE, schedule

LEAST_CLIP = 1e-6  # with a range of 0 nothing would be learnt
NOT_READ = "left out: SLM-Lab's PPO does not read it"
DROPPED: dict[str, str] = {
    "clip_val_loss": "left out: a dead key of SLM-Lab, whose real one is clip_vloss",
    **dict.fromkeys(
        ("explore_var_spec", "training_frequency", "training_iter", "num_step_returns", "center_return"), NOT_READ
    ),
}


def ppo(agent: Section, budget: Budget) -> None:
    """Take over PPO, its net and its optimisers."""
    settings = agent.below("algorithm")
    settings.conversion.set(f"{NATIVE}.name", "ppo", settings.at("name"))
    _settings(settings, budget)
    settings.drop(DROPPED)
    settings.close()
    _memory(agent.below("memory"))
    actor_critic_net(agent.below("net"), budget)


def _settings(settings: Section, budget: Budget) -> None:
    for key in ("gamma", "lam", "time_horizon", "training_epoch", "clip_eps_spec"):
        settings.need(key)
    for key in ("gamma", "lam", "time_horizon", "training_epoch"):
        settings.copy(key, f"{NATIVE}.{key}")
    settings.copy("minibatch_size", f"{NATIVE}.minibatch_size", default=4)
    _value_weight(settings)
    schedule(settings, "clip_eps_spec", f"{NATIVE}.clip_eps", least=LEAST_CLIP)
    drawn_actions(settings)
    policy_terms(settings)
    _advantages(settings)
    settings.copy("normalize_v_targets", f"{NATIVE}.normalize_v_targets")
    settings.copy("symlog", f"{NATIVE}.symlog")
    _value_clip(settings)
    _horizon(settings, budget)


def _advantages(settings: Section) -> None:
    """Standardised unless percentiles are asked for."""
    if settings.get("normalize_advantages") == "percentile":
        settings.copy("normalize_advantages", f"{NATIVE}.normalize_advantages")
        return
    advantages = {"standardize": None, True: None, None: None}
    settings.only("normalize_advantages", advantages, "has no counterpart: advantages are standardised")


def _value_weight(settings: Section) -> None:
    """SLM-Lab halves the squared error of the values that it clips, and only of those; here neither is halved."""
    weight = settings.get("val_loss_coef", 1.0)
    if not settings.get("clip_vloss") or not is_number(weight):
        settings.copy("val_loss_coef", f"{NATIVE}.val_loss_coef", default=1.0)
        return
    settings.conversion.set(f"{NATIVE}.val_loss_coef", weight / 2, settings.at("val_loss_coef"))
    settings.conversion.remark(
        settings.at("clip_vloss"), f"val_loss_coef becomes {weight / 2:g}: SLM-Lab halves the value loss that it clips"
    )


def _value_clip(settings: Section) -> None:
    """SLM-Lab clips values by the range of the policy."""
    if not settings.get("clip_vloss"):
        return
    clip = settings.below("clip_eps_spec")
    if clip.get("name") == "no_decay":
        settings.conversion.set(f"{NATIVE}.clip_vloss", clip.get("start_val"), settings.at("clip_vloss"))
    else:
        settings.conversion.lose(settings.at("clip_vloss"), "by a moving clip_eps has no counterpart")


def _horizon(settings: Section, budget: Budget) -> None:
    horizon = settings.whole("time_horizon", 1)
    if budget.num_envs > 0 and horizon % budget.num_envs:
        rounded = -(-horizon // budget.num_envs) * budget.num_envs
        settings.conversion.remark(
            settings.at("time_horizon"), f"taken as written; SLM-Lab rounds it up to {rounded}, a multiple of num_envs"
        )


def _memory(memory: Section) -> None:
    """A rollout is all the memory that PPO has."""
    memory.only(
        "name", {"OnPolicyBatchReplay": None}, "has no counterpart for PPO, which learns from OnPolicyBatchReplay"
    )
    memory.drop(MEMORY_DROPPED)
    memory.close()


WHOLE = "past steps enter the replay once their episode is over, when their return is known"


def sil(agent: Section, budget: Budget) -> None:
    """Take over A2C and the imitation."""
    _imitation(agent)
    a2c(agent, budget)
    _name(agent, "sil")


def ppo_sil(agent: Section, budget: Budget) -> None:
    """Take over PPO and the imitation."""
    _imitation(agent)
    ppo(agent, budget)
    _name(agent, "ppo_sil")


def _imitation(agent: Section) -> None:
    """What the on-policy algorithm does not know of; read first, so that it is not taken for superfluous."""
    settings, memory = agent.below("algorithm"), agent.below("memory")
    for key, native in (("sil_policy_loss_coef", "sil_policy_coef"), ("sil_val_loss_coef", "sil_value_coef")):
        settings.need(key)
        settings.copy(key, f"{NATIVE}.{native}")
    settings.conversion.set(f"{NATIVE}.sil_iter", gradient_steps(settings, iterations=1), settings.at("training_iter"))
    replay_settings(memory, "sil_replay_name")
    memory.conversion.remark(memory.at("sil_replay_name"), WHOLE)


def _name(agent: Section, name: str) -> None:
    settings = agent.below("algorithm")
    settings.conversion.set(f"{NATIVE}.name", name, settings.at("name"))
