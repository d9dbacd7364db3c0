// A search over episodes as a tree; a node that is clicked is read below it.

import { empty, field, h, select, show, svg, tiles, button } from "./dom.js";
import { move, place } from "./state.js";
import { ask } from "./store.js";
import { episode, heading } from "./trajectory.js";

const ACROSS = 150, DOWN = 54, EDGE = 50;

export function mountTree(main, focused) {
  const view = { now: "" };
  const update = async (changed) => {
    const id = focused();
    const now = JSON.stringify([id, place().episode]);
    if (view.now === now && !changed?.has(id)) return;
    view.now = now;
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    try {
      await draw(main, id, await ask("tree", { run: id, episode: place().episode }));
    } catch (problem) {
      show(main, empty("This search cannot be shown", h("p", { role: "alert" }, problem.message)));
    }
  };
  show(main);
  update();
  return { update };
}

async function draw(main, id, found) {
  const title = h("header", { class: "head" }, h("h1", {}, "Search tree"));
  if (!found.nodes.length) return show(main, title, empty("There is no search in this run", h("p", {}, "None of its episodes continues another.")));
  const choice = found.trees.length > 1 ? field("Search", select(found.trees.map((name) => [name, name]), found.tree, (name) => move({ episode: name }))) : null;
  const depth = Math.max(...found.nodes.map((node) => node.x));
  const facts = tiles({ task: found.task, item: found.item || "–", episodes: found.nodes.filter((node) => node.name).length, depth, "best score": found.best, ...(found.answer ? { answer: found.answer } : {}) });
  const note = h("p", { class: "note" }, `Choose a node to read it below. The thick path leads to ${found.answer ? "what the search answered" : "the best one"}.`);
  const below = h("div");
  show(main, title, choice, facts, h("div", { class: "tree-wrap", tabindex: "0", role: "region", "aria-label": "Search tree" }, picture(id, found)), note, below);
  const chosen = found.chosen === null ? null : found.nodes[found.chosen].name;
  if (!chosen) return;
  const told = await ask("episode", { run: id, episode: chosen });
  const open = button("Open timeline", () => move({ view: "timeline", focus: id, episode: chosen }));
  show(below, heading(id, told, "h2"), h("div", { class: "actions" }, open), episode(told));
}

function picture(id, found) {
  const { nodes } = found;
  const width = 2 * EDGE + ACROSS * Math.max(...nodes.map((node) => node.x)), height = 2 * EDGE + DOWN * Math.max(...nodes.map((node) => node.y));
  const at = (node) => [EDGE + ACROSS * node.x, EDGE + DOWN * node.y];
  const edges = [...nodes].filter((node) => node.parent !== null).sort((a, b) => a.on_path - b.on_path).map((node) => {
    const [x0, y0] = at(nodes[node.parent]), [x1, y1] = at(node), middle = (x0 + x1) / 2;
    return svg("path", { class: node.on_path ? "edge on" : "edge", d: `M${x0} ${y0}C${middle} ${y0} ${middle} ${y1} ${x1} ${y1}` });
  });
  const scores = nodes.map((node) => node.score).filter((score) => score !== null);
  const low = Math.min(...scores), span = Math.max(...scores) - low || 1;
  const marks = nodes.map((node) => {
    const [x, y] = at(node);
    const go = () => node.name && move({ episode: node.name, focus: id });
    const share = node.score === null ? 0 : (node.score - low) / span;
    const shape = node.failed ? svg("path", { d: `M${x - 6} ${y - 6}l12 12m0 -12l-12 12`, class: "cross" })
      : svg("circle", { cx: x, cy: y, r: node.is_best ? 11 : 8, style: { fill: `color-mix(in srgb, var(--accent) ${Math.round(18 + 82 * share)}%, var(--surface))` } });
    const label = svg("text", { x, y: y - 15 }, `${node.label} `, svg("tspan", {}, node.text));
    const kind = ["node", node.place === found.chosen ? "now" : "", node.on_path ? "on" : ""].join(" ");
    return svg("g", { class: kind, tabindex: node.name ? "0" : null, role: node.name ? "button" : null, "aria-label": node.about, onclick: go, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(); } } },
      svg("title", {}, node.about), shape, label);
  });
  return svg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}` }, edges, marks);
}
