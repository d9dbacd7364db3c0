// Panels that several views show: the chosen runs as a table with their intervals, alerts, and completions.

import { ago, button, compact, duration, h, number, plural, show, stampText, svg } from "./dom.js";
import { colour, slotOf } from "./runlist.js";
import { move } from "./state.js";
import { ask, rows } from "./store.js";

export function dot(id) {
  return h("i", { class: "dot", style: { background: colour(slotOf(id)) } });
}

export function stateMark(state, words = state) {
  return h("span", { class: `state ${state}` }, words);
}

export function table(heads, body, props = {}) {
  const row = (cells, tag) => h("tr", {}, cells.map((cell) => h(tag, { class: cell?.right ? "right" : null, scope: tag === "th" ? "col" : null }, cell?.right ? cell.value : cell)));
  return h("div", { class: "table-wrap", tabindex: "0", role: "region", "aria-label": props.label || "Table" },
    h("table", props, h("thead", {}, row(heads, "th")), h("tbody", {}, body.map((each) => (each instanceof Node ? each : row(each, "td")))), props.foot ? h("tfoot", {}, row(props.foot, "td")) : null));
}

export const right = (value) => ({ right: true, value });

// Scores of runs in the same environment stand on one scale, so that intervals can be compared by eye.
function whisker(row, scale) {
  const art = svg("svg", { class: "whisker", viewBox: "0 0 120 14", "aria-hidden": "true", preserveAspectRatio: "none" });
  if (!row.score || !scale) return art;
  const at = (value) => (4 + 112 * ((value - scale[0]) / (scale[1] - scale[0] || 1))).toFixed(1);
  const { point, low, high } = row.score;
  art.append(svg("line", { x1: 0, x2: 120, y1: 7, y2: 7, class: "rail" }));
  if (low !== null) art.append(svg("line", { x1: at(low), x2: at(high), y1: 7, y2: 7, class: "span", style: { stroke: colour(slotOf(row.id)) } }));
  art.append(svg("circle", { cx: at(point), cy: 7, r: 3.4, style: { fill: colour(slotOf(row.id)) } }));
  return art;
}

function scales(some) {
  const found = {};
  for (const row of some) {
    if (!row.score) continue;
    const old = found[row.env] || [Infinity, -Infinity];
    found[row.env] = [Math.min(old[0], row.score.low ?? row.score.point), Math.max(old[1], row.score.high ?? row.score.point)];
  }
  return found;
}

const MOST_SETTINGS = 4;

export function chosenTable(runs, settings) {
  const some = runs.map((id) => rows.get(id)).filter(Boolean);
  const scale = scales(some);
  const differing = settings.slice(0, MOST_SETTINGS).filter((each) => !["env.name", "agent.algorithm.name"].includes(each.path));
  const heads = ["Run", "State", "Algorithm", "Environment", ...differing.map((each) => each.name), right("Seeds"), right("Frames"), "Score with interval", "", right("Time"), right("Age")];
  const body = some.map((row) => [
    h("a", { href: "#", class: "run-link", onclick: (event) => { event.preventDefault(); move({ view: "run", focus: row.id }); } }, dot(row.id), row.name, h("span", { class: "stamp" }, ` ${stampText(row.stamp)}`)),
    stateMark(row.state), row.algorithm || "–", row.env || "–",
    ...differing.map((each) => each.values[row.id]),
    right(`${row.sessions_done}/${row.sessions}`), right(compact(row.frames)),
    h("span", { class: "number" }, row.score ? `${row.score_is_final ? "" : "~ "}${row.score.text}` : "–"), whisker(row, scale[row.env]),
    right(duration(row.seconds)), right(ago(row.created)),
  ]);
  const sum = (pick) => some.reduce((total, row) => total + pick(row), 0);
  const foot = [plural(some.length, "run"), "", "", "", ...differing.map(() => ""), right(`${sum((row) => row.sessions_done)}/${sum((row) => row.sessions)}`), right(compact(sum((row) => row.frames))), "", "", right(duration(sum((row) => row.seconds))), ""];
  const marks = some.some((row) => row.score && !row.score_is_final) ? h("p", { class: "note" }, "~ is the score of the last evaluation; training was not over.") : null;
  return h("section", { class: "panel" }, h("h2", {}, "Chosen runs"), table(heads, body, { foot, label: "Chosen runs" }), marks);
}

export function alertsPanel(alerts) {
  const all = Object.entries(alerts).flatMap(([id, some]) => some.map((each) => ({ id, ...each })));
  if (!all.length) return null;
  return h("section", { class: "panel" }, h("h2", {}, `Alerts`, h("span", { class: "count" }, all.length)),
    h("ul", { class: "alerts" }, all.slice(0, 30).map((each) => h("li", {}, dot(each.id), h("b", {}, each.kind), h("span", { class: "alert-words" }, each.message), h("span", { class: "stamp" }, `${rows.get(each.id)?.name || each.id} ${each.session}`)))),
    all.length > 30 ? h("p", { class: "note" }, `and ${all.length - 30} more`) : null);
}

// What a policy wrote last, with what it earned; looked for again when the run has grown.
export function completionsPanel(id, most = 3) {
  const element = h("section", { class: "panel" });
  const panel = { element, seen: -1, refresh };
  async function refresh() {
    const frames = rows.get(id)?.frames;
    if (frames === panel.seen) return;
    panel.seen = frames;
    const found = await ask("completions", { run: id });
    const all = button(`The newest of ${plural(found.count, "episode")}`, () => move({ view: "completions", focus: id }), { class: "link" });
    show(element, h("h2", {}, dot(id), "Latest completions", h("span", { class: "stamp" }, rows.get(id)?.name)), found.samples.slice(0, most).map((sample) => completion(id, sample)), all);
  }
  refresh().catch((problem) => show(element, h("p", { class: "note" }, problem.message)));
  return panel;
}

export function completion(id, sample) {
  const parts = Object.entries(sample.parts).map(([name, value]) => h("span", { class: "fact" }, name, h("b", {}, number(value))));
  const worth = sample.score > 0 ? "earned" : sample.score < 0 ? "lost" : "";
  const open = (event) => { event.preventDefault(); move({ view: "timeline", focus: id, episode: sample.place }); };
  return h("article", { class: `completion ${worth}` },
    h("header", {}, h("span", { class: "fact strong" }, sample.score === null ? "error" : "reward", h("b", {}, sample.score === null ? "" : number(sample.score))), parts,
      h("span", { class: "quiet" }, [sample.split, `update ${compact(sample.updates)}`, plural(sample.tokens, "token"), sample.item].filter(Boolean).join(" · ")),
      h("a", { href: "#", onclick: open }, "open")),
    sample.turns.map((turn) => h("div", { class: turn.role === "assistant" ? "words said" : "words heard" }, h("span", { class: "who" }, turn.who), words(turn.text))));
}

const HEAD = 14, TAIL = 6, LONGEST = 600;

// A text; of a long one the middle is folded away, and the middle of a very long line is left out and said to be.
export function words(text) {
  const lines = text.split("\n").map((line) => line.length <= LONGEST ? line : `${line.slice(0, LONGEST / 2)} [... ${(line.length - LONGEST).toLocaleString("en")} characters ...] ${line.slice(-LONGEST / 2)}`);
  const block = (some) => h("pre", {}, some.join("\n"));
  if (lines.length <= HEAD + TAIL + 1) return block(lines);
  const middle = lines.slice(HEAD, -TAIL);
  return [block(lines.slice(0, HEAD)), h("details", {}, h("summary", {}, `${middle.length.toLocaleString("en")} lines more`), block(middle)), block(lines.slice(-TAIL))];
}
