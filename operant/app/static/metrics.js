// What metrics are called and which belong together.

const SECTIONS = [
  ["Score", /^(train\/return|eval\/(?!length)|final\/)/],
  ["Rewards", /^(reward|parts)\//],
  ["Policy", /^(policy|q|explore|mismatch)\//],
  ["Lengths and rollouts", /^((train|eval)\/length|rollout\/)/],
  ["Losses", /^(loss|warmup|sil)\//],
  ["Optimiser", /^optim\//],
  ["Speed", /^perf\//],
  ["Others", /./],
];

const NAMES = {
  "train/return": "Return in training",
  "eval/score": "Greedy score in evaluation",
  "final/score": "Final score",
  "train/length": "Length",
  "policy/kl": "KL of an update",
  "policy/reference_kl": "KL to the reference",
  "policy/entropy": "Entropy",
  "policy/clip_fraction": "Clipped share",
  "loss/policy": "Policy loss",
  "loss/value": "Value loss",
  "loss/q": "Q loss",
  "rollout/truncated": "Completions cut off",
  "optim/grad_norm": "Gradient norm",
  "perf/frames_per_second": "Frames per second",
  "perf/tokens_per_second": "Tokens per second",
};

const FIRST = [
  /^eval\/score$/, /^train\/return$/, /^policy\/reference_kl$/, /^policy\/kl$/, /^policy\/entropy$/, /^train\/length$/,
  /^reward\//, /^parts\//, /^rollout\/truncated$/, /^loss\/(policy|value|q|actor|critic)$/,
];
const MOST_FIRST = 9;
const ONCE = /^final\/(low|high|episodes)$/; // said once, at the end

export function metricName(key) {
  return NAMES[key] || key.slice(key.indexOf("/") + 1).replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
}

export function sections(metrics) {
  const left = new Set(metrics.filter((key) => !ONCE.test(key)));
  return SECTIONS.map(([title, pattern]) => {
    const some = [...left].filter((key) => pattern.test(key));
    some.forEach((key) => left.delete(key));
    return [title, some];
  }).filter(([, some]) => some.length);
}

// What is drawn before anybody has chosen: one reward of a single task says the same as the return.
export function defaults(metrics) {
  const rewards = metrics.filter((key) => key.startsWith("reward/"));
  const found = FIRST.flatMap((pattern) => metrics.filter((key) => pattern.test(key)));
  return found.filter((key) => rewards.length !== 1 || key !== rewards[0]).slice(0, MOST_FIRST);
}
