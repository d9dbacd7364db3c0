"""Every setting that SLM-Lab 5 reads, and what becomes of it here; functions say what a table cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from operant.spec.dialects.slm import learning, nets, off_policy, optimisers, sizes
from operant.spec.dialects.slm.learning import A2C, CRITICS, DQN, LOSSES, NAMES, PPO, SIL, SOFT, scheduled
from operant.spec.dialects.table import elsewhere, ignored, only_of, refused, same, under, worked
from operant.spec.reading.document import lookup

GRADIENT, TARGETED = (*CRITICS, "Reinforce"), ("DQN", "DoubleDQN")
ON_POLICY, OFF_POLICY = (*GRADIENT, "SARSA"), (*DQN, *SOFT)
ALGORITHM, NET = "agent.algorithm", "agent.net"


def kind_of(data: Any) -> str:
    """The algorithm of a spec, by which the rest is read; nothing where it has none that is known."""
    name = lookup(data, ("agent", "algorithm", "name"))
    return name if isinstance(name, str) and name in NAMES else ""


NOT_READ = "SLM-Lab does not read it for this algorithm"
DRAWN = "has no counterpart: actions are drawn as they are"
NORMAL = "becomes Normal, limited to the bounds of actions: SLM-Lab 5 has no distribution of this name, and stops at it"
WHERE = "`meta.device` says where, by default on the CPU"
TOP = (
    same("name", "the spec's name", "name"),
    ignored("spec_params", "values to fill placeholders with, one spec each", "-s fills a placeholder, one at a time"),
    worked("body", "how agents and environments of version 4 are paired", "", sizes.several_bodies),
)
ENV = under(
    "env",
    same("name", "the environment's id", "env.name", needed=True, by=sizes.environment),
    same("num_envs", "environments that play at once", "env.num_envs", default=1, by=sizes.environments),
    same("max_frame", "frames of a run, of all environments", "env.max_frame", needed=True, by=sizes.frames),
    same(
        "max_t",
        "the most steps of an episode",
        "env.max_t",
        said="ends episodes here; SLM-Lab 5 stores it and never does",
    ),
    *only_of(
        ["Random"],
        ignored("normalize_obs normalize_reward clip_obs clip_reward", "how observations or rewards are scaled",
                "random play looks at neither"),
    ),
    same("normalize_obs", "scale observations by running statistics", "env.normalize_obs"),
    same("normalize_reward", "scale rewards by the deviation of returns", "env.normalize_reward"),
    worked("clip_obs", "limit of normalised observations", "env.clip_obs", sizes.clip_observations),
    worked("clip_reward", "limit of rewards; 1 in every Atari game", "env.clip_reward", sizes.clip_rewards),
    ignored("device", "where MuJoCo Playground plays", "`meta.device` says where"),
    worked(
        "reward_scale",
        "what rewards of MuJoCo Playground are multiplied by; `sign` in version 4",
        "env.reward_scale",
        sizes.frame_option,
    ),
    worked("frame_op frame_op_len image_downsize", "frames of an Atari game in version 4", "", sizes.frame_option),
    worked("*", "an argument of the environment itself", "env.kwargs", sizes.argument),
)  # fmt: skip
AGENT = under(
    "agent",
    ignored("name", "a label", "a label"),
    *only_of(
        [name for name in NAMES if name != "CrossQ"],
        ignored("critic_net", "the critics' net of CrossQ", "only CrossQ reads it"),
    ),
)
RANDOM = only_of(
    ["Random"],
    worked("agent.algorithm.name", "the algorithm", f"{ALGORITHM}.name", learning.algorithm),
    ignored(
        "agent.algorithm.* agent.memory.* agent.net.*", "how other algorithms learn", "random play does not read it"
    ),
)
ALGORITHMS = under(
    ALGORITHM,
    worked("name", "the algorithm", f"{ALGORITHM}.name", learning.algorithm),
    same("gamma", "discount of later rewards", f"{ALGORITHM}.gamma", needed=True),
    *only_of(
        ["SARSA", *DQN],
        worked(
            "action_policy",
            "how actions are explored",
            f"{ALGORITHM}.exploration, {ALGORITHM}.epsilon, {ALGORITHM}.temperature",
            learning.exploration,
            needed=True,
        ),
        elsewhere("explore_var_spec", "epsilon or temperature by frames", f"{ALGORITHM}.epsilon"),
        ignored("action_pdtype", "the distribution of actions", "the policy decides how actions are drawn"),
    ),
    *only_of(
        GRADIENT,
        refused("action_pdtype", "the distribution of actions", "has no counterpart: Categorical or Normal",
                unless={"default": "", "Categorical": "", "Normal": "", "NormalTanh": NORMAL}),
    ),
    refused("action_policy", "how actions are drawn", DRAWN, unless=("default",)),
    *only_of(
        GRADIENT,
        worked("entropy_coef_spec", "weight of the entropy by frames", f"{ALGORITHM}.entropy_coef",
               scheduled(f"{ALGORITHM}.entropy_coef", default=0.0)),
    ),
    *only_of(
        [*A2C, "Reinforce"],
        refused("policy_loss_coef", "weight of the policy loss", "has no counterpart: it has weight 1", unless=(1,)),
    ),
    *only_of(
        PPO,
        same("lam", "lambda of generalised advantages", f"{ALGORITHM}.lam", needed=True),
        worked("time_horizon", "steps of each environment in an update",
               f"{ALGORITHM}.time_horizon, {ALGORITHM}.minibatch_size, {ALGORITHM}.training_episodes",
               learning.horizon),
        elsewhere("minibatch_size", "samples of a gradient step; 4 where it is absent", f"{ALGORITHM}.minibatch_size"),
        elsewhere("training_frequency", "episodes of an update, before version 5", f"{ALGORITHM}.training_episodes"),
        same("training_epoch", "passes over the samples of an update", f"{ALGORITHM}.training_epoch", needed=True),
        worked("clip_eps_spec", "range of the ratio of probabilities, by frames", f"{ALGORITHM}.clip_eps",
               scheduled(f"{ALGORITHM}.clip_eps", least=1e-6), needed=True),
        worked("val_loss_coef", "weight of the value loss, halved where it is clipped", f"{ALGORITHM}.val_loss_coef",
               learning.value_weight),
        worked("clip_vloss", "clip the change of values by clip_eps", f"{ALGORITHM}.clip_vloss", learning.value_clip),
        same("normalize_advantages", "how advantages are scaled", f"{ALGORITHM}.normalize_advantages",
             values={"standardize": "standardise", "percentile": "percentile", True: "standardise"}),
        same("symlog", "values on a logarithmic scale", f"{ALGORITHM}.symlog"),
        ignored("clip_val_loss", "nothing", "a dead key of SLM-Lab, whose real one is clip_vloss"),
    ),
    *only_of(
        CRITICS,
        same("normalize_v_targets", "scale value targets by running statistics", f"{ALGORITHM}.normalize_v_targets"),
    ),
    *only_of(
        A2C,
        worked("lam", "lambda of generalised advantages", f"{ALGORITHM}.lam", learning.returns),
        elsewhere("num_step_returns", "rewards summed before the bootstrap, and steps of an update",
                  f"{ALGORITHM}.num_step_returns, {ALGORITHM}.training_frequency"),
        same("val_loss_coef", "weight of the value loss", f"{ALGORITHM}.val_loss_coef", default=1.0),
    ),
    *only_of(
        SIL,
        same("sil_policy_loss_coef", "weight of imitation in the policy", f"{ALGORITHM}.sil_policy_coef", needed=True),
        same("sil_val_loss_coef", "weight of imitation in the values", f"{ALGORITHM}.sil_value_coef", needed=True),
        worked("training_iter", "batches of imitation after each update", f"{ALGORITHM}.sil_iter",
               learning.imitation_steps),
        elsewhere("training_batch_iter", "gradient steps on each batch", f"{ALGORITHM}.sil_iter"),
    ),
    *only_of(
        [*A2C, "Reinforce", "SARSA"],
        worked("training_frequency", "steps or, with OnPolicyReplay, episodes of an update",
               f"{ALGORITHM}.training_frequency, {ALGORITHM}.training_episodes", learning.rollout),
    ),
    *only_of(
        ["Reinforce"],
        ignored("center_return", "returns less their mean", "returns are standardised, as SLM-Lab does in any case"),
    ),
    *only_of(
        OFF_POLICY,
        worked("training_frequency", "frames between rounds of gradient steps", f"{ALGORITHM}.training_frequency",
               off_policy.rounds),
        elsewhere("training_iter", "batches of a round", f"{ALGORITHM}.training_iter"),
        elsewhere("training_batch_iter", "gradient steps on each batch", f"{ALGORITHM}.training_iter"),
        worked("training_start_step", "frames before the first gradient step", f"{ALGORITHM}.training_start",
               off_policy.training_start),
    ),
    *only_of(
        SOFT,
        worked("action_pdtype", "the distribution of actions, discrete or not",
               f"{ALGORITHM}.critic_reduction, {ALGORITHM}.discrete_entropy", off_policy.discrete_or_not),
        worked("fixed_alpha", "a temperature that is not learnt",
               f"{ALGORITHM}.temperature, {ALGORITHM}.learn_temperature", off_policy.fixed_temperature),
        worked("log_alpha_min", "least logarithm of the temperature", f"{ALGORITHM}.temperature_min",
               off_policy.temperature_limit),
        worked("log_alpha_max", "largest logarithm of the temperature", f"{ALGORITHM}.temperature_max",
               off_policy.temperature_limit),
        same("policy_delay", "gradient steps of the critics per step of the policy", f"{ALGORITHM}.policy_delay"),
        *(
            refused(key, means, "has no counterpart: there is no such setting here", unless=harmless)
            for key, means, harmless in (
                ("symlog", "values on a logarithmic scale", (False,)),
                ("alpha_lr", "learning rate of the temperature", ()),
                ("alpha_anneal_frames", "frames until a fixed temperature is 0", (0, False)),
                ("entropy_anneal", "a target entropy that moves", (False,)),
                ("entropy_penalty_coef", "weight of a penalty on changes of entropy", (0, False)),
                ("spectral_norm", "spectral normalisation of the critics", (False,)),
                ("target_entropy", "the target entropy", ("auto",)),
            )
        ),
    ),
    ignored("action_policy explore_var_spec entropy_coef_spec val_loss_coef policy_loss_coef lam num_step_returns"
             " training_epoch training_iter training_batch_iter center_return symlog normalize_v_targets"
             " normalize_advantages clip_vloss time_horizon minibatch_size", "a setting of other algorithms", NOT_READ),
)  # fmt: skip
MEMORY = under(
    "agent.memory",
    *only_of(
        ON_POLICY,
        worked("name", "whether steps or whole episodes are collected",
               f"{ALGORITHM}.training_frequency, {ALGORITHM}.training_episodes", learning.on_policy_memory),
        elsewhere("cross_entropy", "quantile of rewards above which episodes are learnt from",
                  f"{ALGORITHM}.elite_fraction"),
    ),
    *only_of(SIL, worked("sil_replay_name", "the replay that is imitated", "agent.memory.name", off_policy.imitated)),
    *only_of(
        OFF_POLICY,
        worked("name", "the replay", "agent.memory.name, agent.memory.beta", off_policy.replay),
        elsewhere("alpha", "how strongly errors become priorities", "agent.memory.alpha"),
        elsewhere("epsilon", "least priority", "agent.memory.epsilon"),
    ),
    *only_of(
        [*SIL, *OFF_POLICY],
        same("batch_size", "samples of a gradient step", "agent.memory.batch_size", needed=True),
        same("max_size", "samples that the replay holds", "agent.memory.max_size", needed=True),
        same("use_cer", "every batch holds the newest samples", "agent.memory.combined"),
    ),
    ignored("batch_size max_size use_cer cross_entropy alpha epsilon stack_len", "a setting of replays",
            "an on-policy memory does not read it"),
)  # fmt: skip
NETS = under(
    NET,
    worked("type", "the kind of net, whose layers follow from it", f"{NET}.type, {NET}.hidden, {NET}.conv",
           nets.net_type, needed=True),
    elsewhere("hid_layers", "widths of an MLPNet", f"{NET}.hidden"),
    elsewhere("conv_hid_layers", "convolutions of a ConvNet", f"{NET}.conv"),
    elsewhere("fc_hid_layers", "widths behind convolutions, or before recurrent layers", f"{NET}.hidden"),
    elsewhere("hid_layers_activation", "non-linearity of hidden layers", f"{NET}.activation"),
    elsewhere("cell_type", "GRU or LSTM", f"{NET}.type"),
    elsewhere("rnn_hidden_size", "width of recurrent layers", f"{NET}.recurrent"),
    elsewhere("rnn_num_layers", "recurrent layers", f"{NET}.layers"),
    elsewhere("bidirectional", "read a sequence from both ends", ""),
    elsewhere("seq_len", "observations of a sequence", ""),
    elsewhere("arc", "the layers of a TorchArcNet", f"{NET}.hidden, {NET}.conv, {NET}.activation, {NET}.layer_norm"),
    *only_of(
        CRITICS,
        elsewhere("actor_arc", "the layers of the policy alone", f"{NET}.hidden"),
        elsewhere("critic_arc", "the layers of the values alone", f"{ALGORITHM}.critic_hidden"),
    ),
    elsewhere("arc_file", "a file of the layers of a TorchArcNet", ""),
    elsewhere("normalize", "divide pixels by 255", ""),
    worked("init_fn", "how weights begin", f"{NET}.init", nets.first_weights),
    elsewhere("actor_init_std", "scale of the policy head's first weights", f"{NET}.actor_gain"),
    elsewhere("critic_init_std", "scale of the value head's first weights", f"{NET}.critic_gain"),
    same("layer_norm", "normalise hidden layers", f"{NET}.layer_norm"),
    worked("batch_norm", "normalise layers by batches", "", nets.batch_norm),
    refused("out_layer_activation", "non-linearity of the outputs", "has no counterpart for this net"),
    *only_of(CRITICS, same("shared", "policy and values have one body", f"{NET}.shared")),
    *only_of(GRADIENT, same("log_std_init", "first logarithm of the actions' deviation", f"{NET}.log_std_init")),
    *only_of(
        CRITICS,
        worked("loss_spec.name", "loss of the values; squared where they are clipped", f"{ALGORITHM}.val_loss",
               learning.value_loss),
    ),
    *only_of(
        ["SARSA", *DQN],
        same("loss_spec.name", "loss of temporal differences", f"{ALGORITHM}.loss", default="MSELoss", values=LOSSES),
    ),
    *only_of(SOFT, same("loss_spec.name", "loss of the critics", f"{ALGORITHM}.loss", values=LOSSES)),
    *only_of(["Reinforce"], ignored("loss_spec", "a loss", "a policy gradient has no loss to choose")),
    refused("loss_spec.beta loss_spec.delta", "where the Huber loss bends", "has no counterpart: it bends at 1", (1,)),
    worked("optim_spec", "the optimiser of the net, Adam where it is absent", f"{NET}.optimizer",
           optimisers.optimisers),
    *(
        row
        for key, means in (
            ("optim_spec", "the optimiser"),
            ("actor_optim_spec", "the policy's optimiser"),
            ("critic_optim_spec", "the values' optimiser"),
        )
        for row in (
            elsewhere(key, means, f"{NET}.optimizer"),
            elsewhere(f"{key}.name", f"{means}, by torch's name", f"{NET}.optimizer.name"),
            elsewhere(f"{key}.lr", f"learning rate of {means}",
                      f"{NET}.optimizer.{'critic_lr' if key.startswith('critic') else 'lr'}"),
            elsewhere(f"{key}.*", f"an argument of {means} in torch", f"{NET}.optimizer"),
        )
    ),
    elsewhere("use_same_optim", "values are stepped by the policy's optimiser", f"{NET}.optimizer.critic_lr"),
    worked("clip_grad_val", "largest norm of a gradient", f"{NET}.optimizer.clip_grad_norm",
           optimisers.gradient_limit),
    worked("lr_scheduler_spec", "how the learning rate changes",
           f"{NET}.optimizer.lr_end_fraction, {NET}.optimizer.scheduler", optimisers.scheduler),
    *only_of(
        TARGETED,
        worked("update_type", "whether the target net is copied or blended",
               f"{ALGORITHM}.polyak, {ALGORITHM}.target_update", off_policy.target),
        elsewhere("update_frequency", "frames between copies", f"{ALGORITHM}.target_update"),
        elsewhere("polyak_coef", "share of the net that its target takes", f"{ALGORITHM}.polyak"),
    ),
    *only_of(
        ["SoftActorCritic"],
        worked("update_type", "how target critics follow", f"{ALGORITHM}.polyak", off_policy.soft_target),
        elsewhere("update_frequency", "nothing, with polyak", ""),
        elsewhere("polyak_coef", "share of the critics that their targets take", f"{ALGORITHM}.polyak"),
    ),
    ignored("update_type update_frequency polyak_coef", "how a target net follows", "there is no target net"),
    ignored("shared", "policy and values have one body", "this algorithm has no such pair, or keeps it apart"),
    ignored("log_std_init", "first logarithm of the actions' deviation", "the net gives it, or there is none"),
    ignored("gpu", "whether the net lives on a GPU", WHERE),
    ignored("cuda_id", "which GPU", WHERE),
    *only_of(
        CRITICS,
        worked("*", "with actor_ or critic_ before it, a setting of that net alone", "", nets.of_one_net),
    ),
)  # fmt: skip
CRITIC_NET = only_of(
    ["CrossQ"],
    *under(
        "agent.critic_net",
        worked("type", "the critics' layers", f"{ALGORITHM}.critic_hidden, {ALGORITHM}.batch_renorm",
               nets.critic_graph),
        elsewhere("arc", "the layers of the critics and their renormalisation",
                  f"{ALGORITHM}.critic_hidden, {ALGORITHM}.renorm_momentum, {ALGORITHM}.renorm_warm_up"),
        elsewhere("hid_layers", "widths of the critics", f"{ALGORITHM}.critic_hidden"),
        worked("init_fn", "how weights begin", f"{NET}.init", nets.as_the_actor),
        worked("clip_grad_val", "largest norm of a gradient", f"{NET}.optimizer.clip_grad_norm", nets.as_the_actor),
        worked("optim_spec", "the critics' optimiser", f"{NET}.optimizer.critic_lr", optimisers.critic_optimiser),
        ignored("loss_spec", "a loss", "SLM-Lab reads the one of `net`"),
        ignored("hid_layers_activation lr_scheduler_spec gpu normalize shared use_same_optim update_type"
                 " update_frequency polyak_coef", "the same for both", "the actor's says the same for both"),
    ),
)  # fmt: skip
META = under(
    "meta",
    worked("distributed", "sessions train one set of weights asynchronously", "env.num_envs", sizes.distributed),
    worked("max_session", "runs with other seeds, or workers", "meta.max_session", sizes.count),
    same("log_frequency", "frames between rows of metrics", "meta.log_frequency", default=10_000),
    worked("rigorous_eval", "environments to evaluate in; 0 evaluates nothing", "meta.eval_frequency",
           sizes.evaluation),
    elsewhere("eval_frequency", "frames between evaluations", "meta.eval_frequency"),
    worked("max_trial", "trials of a search", "meta.max_trial", sizes.trials),
    elsewhere("search_resources", "cores and GPUs of a trial",
              "meta.search_resources.cpu, meta.search_resources.gpu"),
    elsewhere("search_scheduler", "when trials are stopped",
              "meta.search_scheduler.grace_period, meta.search_scheduler.reduction_factor"),
    ignored("search", "nothing", "SLM-Lab does not read it"),
    ignored("random_seed", "the seed", "SLM-Lab draws its seed from the clock; here `meta.seed` sets it"),
    ignored("num_gpus", "nothing", "SLM-Lab does not read it"),
    ignored("experiment trial session experiment_ts cuda_offset resume git_sha predir prepath graph_prepath"
             " info_prepath log_prepath model_prepath", "where SLM-Lab is in its work", "SLM-Lab's own bookkeeping"),
)  # fmt: skip
LEARNERS = tuple(name for name in NAMES if name != "Random")
LEARNING = tuple(replace(row, of=row.of or LEARNERS) for row in (*ALGORITHMS, *MEMORY, *NETS))
ROWS = (*TOP, *ENV, *AGENT, *RANDOM, *LEARNING, *CRITIC_NET, *META)
