// A hyperparameter search: every trial as a line through its settings, what mattered, and the ranking.

import { compact, empty, h, number, plural, show, svg } from "./dom.js";
import { dot, right, stateMark, table } from "./panels.js";
import { move } from "./state.js";
import { ask, rows } from "./store.js";

const WIDTH = 900, HEIGHT = 320, TOP = 34, BOTTOM = 26, EDGE = 50;
const MOST_ROWS = 300;

export function mountTrials(main, focused) {
  const view = { now: "" };
  const update = async (changed) => {
    const id = focused();
    if (view.now === id && !changed?.has(id)) return;
    view.now = id;
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    try {
      draw(main, id, await ask("search", { run: id }));
    } catch (problem) {
      show(main, empty("This search cannot be read", h("p", { role: "alert" }, problem.message)));
    }
  };
  show(main);
  update();
  return { update };
}

function draw(main, id, found) {
  const head = h("header", { class: "head" }, h("h1", {}, "Trials"), h("p", { class: "lede" }, dot(id), rows.get(id).id));
  if (!found.trials.length) {
    return show(main, head, empty("This run is no hyperparameter search", h("p", {}, "A search is started with ", h("code", {}, "operant search SPEC"), "; its trials appear here as they run.")));
  }
  const weights = h("section", { class: "panel" }, h("h2", {}, "What mattered"), h("p", { class: "note" }, "Computing …"));
  const curves = h("a", { href: "#", onclick: (event) => { event.preventDefault(); move({ view: "curves", run: [id], group: "trial" }); } }, "Curves of all trials");
  const scored = found.trials.filter((row) => row.score !== null);
  const lines = h("section", { class: "panel" }, h("h2", {}, "Every trial", h("span", { class: "count" }, found.trials.length), curves),
    scored.length > 1 ? h("div", { class: "tree-wrap" }, parallel(found, scored)) : h("p", { class: "note" }, "A picture needs two trials with a score."));
  show(main, head, lines, h("div", { class: "columns" }, weights, ranking(found)));
  ask("importance", { run: id }).then((told) => show(weights, h("h2", {}, "What mattered"), importance(told, found.settings)), (problem) => show(weights, h("p", { class: "note" }, problem.message)));
}

function importance(told, settings) {
  const weights = Object.entries(told.importance);
  if (!weights.length) return h("p", { class: "note" }, told.method);
  const names = Object.fromEntries(settings.map((each) => [each.path, each.name]));
  const bars = weights.map(([path, weight]) => [h("dt", { title: path }, names[path] || path), h("dd", {}, h("span", { class: "bar", style: { width: `${Math.round(100 * weight)}%` } }), h("b", {}, `${Math.round(100 * weight)}%`))]);
  return [h("dl", { class: "bars" }, bars), h("p", { class: "note" }, `Share of the score that each setting explains, by ${told.method}.`)];
}

function ranking(found) {
  const heads = [right("Trial"), ...found.settings.map((each) => right(each.name)), "Score", right("Rung"), right("Frames"), "State"];
  const forks = found.trials.some((row) => row.parent !== null);
  const body = found.trials.slice(0, MOST_ROWS).map((row) => [right(row.trial), ...row.cells.map((cell) => right(cell)), h("span", { class: "number" }, row.text), right(`${row.rung}/${found.rungs.length}`), right(compact(row.frames)),
    stateMark(row.state), ...(forks ? [row.parent === null ? "" : `fork of ${row.parent} at ${row.forked_at.toLocaleString("en")}`] : [])]);
  const more = found.trials.length > MOST_ROWS ? h("p", { class: "note" }, `and ${plural(found.trials.length - MOST_ROWS, "more trial")}`) : null;
  return h("section", { class: "panel grow" }, h("h2", {}, "Ranking"), table([...heads, ...(forks ? [""] : [])], body, { label: "Trials" }), more);
}

// One vertical axis for each setting and one for the score; a better trial is drawn stronger.
function parallel(found, scored) {
  const forks = scored.some((row) => row.parent !== null);
  const axes = [
    ...(forks ? [axis("begun at", scored.map((row) => row.forked_at), false)] : []),
    ...found.settings.map((each) => axis(each.name, scored.map((row) => row.settings[each.path]), found.log_scaled.includes(each.path))),
    axis("score", scored.map((row) => row.score), false),
  ];
  const x = (at) => EDGE + (at * (WIDTH - 2 * EDGE)) / Math.max(1, axes.length - 1);
  const y = (share) => HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
  const rank = axes.at(-1).shares;
  const order = scored.map((_, at) => at).sort((a, b) => rank[a] - rank[b]);
  const lines = order.map((trial) => svg("path", {
    class: "trial", style: { opacity: (0.18 + 0.82 * rank[trial] ** 2).toFixed(2), strokeWidth: (1 + 1.4 * rank[trial] ** 2).toFixed(1) },
    d: axes.map((each, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(each.shares[trial]).toFixed(1)}`).join(""),
  }, svg("title", {}, `trial ${scored[trial].trial}: score ${scored[trial].text}`)));
  const rails = axes.map((each, at) => svg("g", { class: "rail" }, svg("line", { x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }),
    svg("text", { x: x(at), y: 14, class: "axis-name" }, each.name), each.labels.map(([share, text]) => svg("text", { x: x(at), y: share === 1 ? y(1) - 6 : share === 0 ? y(0) + 16 : y(share) }, text))));
  return svg("svg", { class: "parallel", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${scored.length} trials as lines through their settings; stronger is better` }, lines, rails);
}

function axis(name, values, isLog) {
  if (values.every((value) => typeof value === "number")) {
    const scaled = values.map((value) => (isLog ? Math.log(value) : value));
    const low = Math.min(...scaled), span = Math.max(...scaled) - low;
    const labels = [[0, number(Math.min(...values))], [1, number(Math.max(...values))]];
    return { name: isLog ? `${name} (log)` : name, shares: scaled.map((value) => (span ? (value - low) / span : 0.5)), labels: span ? labels : [[0.5, labels[0][1]]] };
  }
  const texts = values.map((value) => JSON.stringify(value)), known = [...new Set(texts)].sort();
  const share = (text) => (known.length > 1 ? known.indexOf(text) / (known.length - 1) : 0.5);
  return { name, shares: texts.map(share), labels: known.map((text) => [share(text), text]) };
}
