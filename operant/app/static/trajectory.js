// One episode as a timeline, and two side by side: facts, rewards and costs by turn, and every word.

import { Chart } from "./chart.js";
import { button, empty, h, icon, number, plural, select, show, tiles } from "./dom.js";
import { dot, words } from "./panels.js";
import { move, place } from "./state.js";
import { ask } from "./store.js";

export function mountTimeline(main, focused) {
  return mounted(main, focused, async (id) => {
    const found = await ask("episode", { run: id, episode: place().episode });
    const to = (name, view = "timeline") => () => move({ view, focus: id, episode: name, other: "" });
    const others = select([["", "Compare with another episode of this task"], ...found.alike.map((name) => [name, name])], "", (other) => other && move({ view: "compare", focus: id, episode: found.name, other }), { "aria-label": "Compare with" });
    const ways = h("div", { class: "actions" },
      button([icon("left"), "Previous"], to(found.previous), { disabled: !found.previous }), button(["Next", icon("right")], to(found.next), { disabled: !found.next }),
      button("Search tree", to(found.name, "tree"), { disabled: !found.in_tree }), others);
    show(main, heading(id, found), ways, episode(found));
  });
}

export function mountCompare(main, focused) {
  return mounted(main, focused, async (id) => {
    const { episode: left, other: right } = place();
    const found = await ask("compare", { run: id, episode: left, other: right });
    const choices = (now) => [["", "Choose an episode"], ...(found.names.includes(now) || !now ? found.names : [now, ...found.names]).map((name) => [name, name])];
    const picks = h("div", { class: "pairs" }, ["episode", "other"].map((key, at) =>
      select(choices(place()[key]), place()[key], (name) => move({ view: "compare", focus: id, [key]: name }), { "aria-label": ["Left", "Right"][at] })));
    const title = h("header", { class: "head" }, h("h1", {}, "Compare"));
    if (!found.sides) {
      const few = found.names.length < 2 ? "Two episodes are needed, and this run has fewer." : "Choose two episodes.";
      return show(main, title, found.names.length < 2 ? null : picks, empty(few));
    }
    const heads = h("div", { class: "pairs" }, found.sides.map((side) => h("div", {}, h("h2", {}, `${side.task} · ${side.name}`), h("p", { class: "lede" }, side.about.join("  ·  ")), tiles(side.tiles), problem(side),
      button("Open timeline", () => move({ view: "timeline", focus: id, episode: side.name, other: "" })))));
    const apart = h("p", { class: "parting" }, found.parting === null ? "They are the same throughout." : `They diverge at turn ${found.parting}.`);
    const rewards = h("div");
    const pairs = found.rows.flatMap((row) => row.same_opening ? [h("div", { class: "both" }, card(row.left))]
      : [row.left, row.right].map((step) => step ? card(step, row.same_words ? "same words" : "") : h("div", { class: "step over" }, "over")));
    show(main, title, picks, heads, rewards, apart, h("div", { class: "pairs" }, pairs));
    drawRewards(rewards, found.sides);
  });
}

function mounted(main, focused, draw) {
  const view = { now: "" };
  const update = async () => {
    const id = focused();
    const now = JSON.stringify([id, place().episode, place().other, document.documentElement.dataset.theme]);
    if (view.now === now) return;
    view.now = now;
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    try {
      await draw(id);
    } catch (problem) {
      show(main, empty("This episode cannot be shown", h("p", { role: "alert" }, problem.message)));
    }
  };
  show(main);
  update();
  return { update };
}

export function heading(id, found, level = "h1") {
  return h("header", { class: "head" }, h(level, {}, dot(id), `${found.task} · ${found.name}`), h("p", { class: "lede" }, found.about.join("  ·  ")));
}

function problem(found) {
  return found.error ? h("p", { class: "error", role: "alert" }, `error: ${found.error}`) : null;
}

export function episode(found) {
  const parts = Object.entries(found.parts).map(([name, value]) => h("span", { class: "fact" }, name, h("b", {}, number(value))));
  if (!found.steps.length) return [tiles(found.tiles), h("div", { class: "facts" }, parts), problem(found), empty("No turns were kept of this episode.")];
  const rewards = h("div"), costs = h("div");
  queueMicrotask(() => { drawRewards(rewards, [found]); drawCosts(costs, found.steps); });
  return [tiles(found.tiles), h("div", { class: "facts" }, parts), problem(found), h("div", { class: "grid" }, rewards, costs), h("div", { class: "steps" }, found.steps.map((step) => card(step)))];
}

function drawRewards(holder, sides) {
  if (!sides.some((side) => side.steps.some((step) => step.reward !== null))) return holder.remove();
  const lines = sides.map((side, slot) => {
    const said = side.steps.filter((step) => step.said);
    const whose = sides.length > 1 ? `${side.name}: ` : "";
    const faulty = said.filter((step) => step.fault);
    return [
      { label: `${whose}total reward`, slot, marks: true, x: said.map((step) => step.number), mean: said.map((step) => step.total) },
      { label: `${whose}fault`, slot, marks: "--bad", x: faulty.map((step) => step.number), mean: faulty.map((step) => step.total) },
    ];
  }).flat();
  chart(holder, "Reward up to each turn", lines);
}

function drawCosts(holder, steps) {
  const said = steps.filter((step) => step.said);
  const x = said.map((step) => step.number);
  const lines = [{ label: "tokens written", slot: 2, marks: true, x, mean: said.map((step) => step.tokens) }, { label: "tokens read", slot: 8, marks: true, x, mean: said.map((step) => step.read) }];
  if (said.some((step) => step.seconds !== null)) lines.push({ label: "seconds", slot: 3, marks: true, x, mean: said.map((step) => step.seconds) });
  chart(holder, "Tokens and seconds of each turn", lines);
}

function chart(holder, title, lines) {
  const body = h("div", { class: "chart" });
  holder.className = "card";
  show(holder, h("header", {}, h("h2", {}, title)), body);
  new Chart(body, { unit: "turn", sync: false, whole: true, height: 170 }).draw(lines);
}

export function card(step, note = "") {
  const worth = step.fault ? "fault" : step.reward > 0 ? "earned" : step.reward < 0 ? "lost" : "";
  const signed = (value) => `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`;
  const facts = [step.tool, step.reward === null ? "" : `reward ${signed(step.reward)}`, step.score === null ? "" : `score ${step.score}`, note].filter(Boolean);
  const costs = [step.said ? plural(step.tokens, "token") : "", step.read ? `${step.read.toLocaleString("en")} read` : "", step.time, step.reward === null ? "" : `total ${signed(step.total)}`].filter(Boolean);
  return h("article", { class: `step ${worth}` },
    h("header", {}, h("b", {}, step.number ? `Turn ${step.number}` : "Opening"), facts.map((fact) => h("span", { class: "fact" }, fact)), h("span", { class: "quiet" }, costs.join(" · "))),
    step.fault ? h("p", { class: "error" }, `fault: ${step.fault}`) : null,
    step.turns.map((turn) => h("div", { class: turn.role === "assistant" ? "words said" : "words heard" }, h("span", { class: "who" }, turn.who), words(turn.text))));
}
