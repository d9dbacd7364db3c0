// The episodes of a run: filters, a table, and the way to one of them or two.

import { button, empty, field, h, number, plural, select, show, tiles } from "./dom.js";
import { dot, right, table } from "./panels.js";
import { move } from "./state.js";
import { ask, rows } from "./store.js";

const WAIT_MS = 200;

export function mountEpisodes(main, focused) {
  const view = { query: {}, ticked: [], id: "", main };
  const update = (changed) => {
    const id = focused();
    if (id !== view.id) Object.assign(view, { id, query: {}, ticked: [], form: null });
    else if (!changed?.has(id)) return;
    load(view);
  };
  show(main);
  update();
  return { update };
}

async function load(view) {
  const { id } = view;
  if (!id) return show(view.main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
  try {
    const found = await ask("episodes", { run: id, ...view.query });
    if (view.id === id) draw(view, found);
  } catch (problem) {
    if (view.form) show(view.results, h("p", { class: "error", role: "alert" }, problem.message));
    else show(view.main, empty("These episodes cannot be read", h("p", {}, problem.message)));
  }
}

function draw(view, found) {
  if (!view.form) {
    view.form = h("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, filters(view, found));
    view.results = h("div");
    const head = h("header", { class: "head" }, h("h1", {}, "Episodes"), h("p", { class: "lede" }, dot(view.id), rows.get(view.id).id));
    show(view.main, head, view.form, view.results);
  }
  if (!found.count) return show(view.results, empty("No episode was written here yet", h("p", {}, "The first one appears here as it comes.")));
  const left = found.matching - found.rows.length;
  const notes = [
    found.damaged ? `${plural(found.damaged, "line")} of these files could not be read and are left out.` : "",
    left > 0 ? `The first ${found.rows.length.toLocaleString("en")} of ${found.matching.toLocaleString("en")} are listed; narrow the filters to see others.` : "",
  ].filter(Boolean);
  view.actions = h("div", { class: "actions" });
  show(view.results, tiles(found.totals), view.actions, notes.map((note) => h("p", { class: "note" }, note)),
    found.rows.length ? list(view, found.rows) : empty("No episodes match."));
  drawActions(view);
}

function list(view, all) {
  const heads = [h("span", { class: "sr" }, "Tick"), "Episode", "Task", "Item", "Split", right("Version"), right("Score"), right("Turns"), right("Tokens"), right("Seconds"), right("Faults"), "Ended"];
  const body = all.map((row) => {
    const box = h("input", { type: "checkbox", checked: view.ticked.includes(row.name), "aria-label": `Tick ${row.name}`, onchange: () => {
      view.ticked = view.ticked.includes(row.name) ? view.ticked.filter((each) => each !== row.name) : [...view.ticked, row.name];
      drawActions(view);
    } });
    const open = h("a", { href: "#", class: "mono", onclick: (event) => { event.preventDefault(); move({ view: "timeline", focus: view.id, episode: row.name }); } }, row.name);
    return [box, open, row.task, row.item || "–", row.split, right(row.version ?? "–"), right(row.score === null ? "–" : number(row.score)), right(row.turns.toLocaleString("en")), right(row.tokens ? row.tokens.toLocaleString("en") : "–"),
      right(row.seconds === null ? "–" : row.seconds.toFixed(1)), right(row.faults || ""), row.error ? h("span", { class: "bad", title: row.error }, row.ended) : row.ended];
  });
  return h("section", { class: "panel rows-panel" }, table(heads, body, { label: "Episodes" }));
}

function drawActions(view) {
  const { ticked, id } = view;
  const to = (name, episode, other = "") => () => move({ view: name, focus: id, episode, other });
  show(view.actions,
    button("Open timeline", to("timeline", ticked[0]), { disabled: ticked.length !== 1 }),
    button("Compare two", to("compare", ticked[0], ticked[1]), { disabled: ticked.length !== 2 }),
    button("Search tree", to("tree", ticked[0]), { disabled: ticked.length !== 1 }),
    h("span", { class: "note" }, ticked.length ? ticked.join(" and ") : "Tick one row to open it, two to compare them."));
}

function filters(view, found) {
  let waiting = 0;
  const set = (key, value) => {
    view.query[key] = value;
    clearTimeout(waiting);
    waiting = setTimeout(() => load(view), WAIT_MS);
  };
  const choice = (key, label, any) => field(label, select([["", any], ...found.values[key].map((each) => [each, each])], "", (value) => set(key, value), { name: key }));
  const text = (key, label, placeholder) => field(label, h("input", { type: "search", name: key, placeholder, oninput: (event) => set(key, event.target.value) }));
  const span = (key, label, ends) => field(label, h("span", { class: "ends" }, ["from", "to"].map((side, at) =>
    h("input", { type: "number", step: "any", name: `${key}-${side}`, placeholder: ends ? number(ends[at]) : side, "aria-label": `${label} ${side}`, disabled: !ends, oninput: (event) => {
      view[key] = { ...view[key], [side]: event.target.value };
      const { from = "", to = "" } = view[key];
      set(key, from || to ? `${from}..${to}` : "");
    } }))));
  const flag = (key, label) => h("label", { class: "switch" }, h("input", { type: "checkbox", name: key, onchange: (event) => set(key, event.target.checked ? "1" : "") }), label);
  return [choice("task", "Task", "every task"), choice("split", "Split", "every split"), choice("ended", "Ended", "any way"), span("score", "Score", found.scores), span("version", "Policy version", found.versions),
    text("item", "Item", "blotto/eval/*"), text("text", "Text in any turn", "ValueError"), field("First", select(found.orders.map((each) => [each, each]), "newest", (value) => set("order", value), { name: "order" })),
    h("div", { class: "flags" }, flag("faulty", "Faults"), flag("failed", "Errors"))];
}
