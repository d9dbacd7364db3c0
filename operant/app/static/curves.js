// Curves of the chosen runs: any metric, over any axis, grouped and smoothed. Charts load when they come into view.

import { Chart } from "./chart.js";
import { button, compact, empty, field, h, icon, plural, select, show } from "./dom.js";
import { defaults, metricName, sections } from "./metrics.js";
import { alertsPanel, chosenTable, completionsPanel } from "./panels.js";
import { nameOf, slotOf } from "./runlist.js";
import { move, place } from "./state.js";
import { post, rows } from "./store.js";

const NEW = { x: [], mean: [], low: null, high: null, min: null, max: null, each: [] };

export function mountCurves(main) {
  const tools = h("div", { class: "tools" });
  const chooser = h("div", { class: "chooser", hidden: true });
  const grid = h("div", { class: "grid" });
  const note = h("p", { class: "note" });
  const below = h("div", { class: "below" });
  show(main, h("h1", { class: "sr" }, "Curves"), tools, chooser, grid, note, below);
  const view = { tools, chooser, grid, note, below, cards: new Map(), about: null, asked: "" };
  view.seen = new IntersectionObserver((seen) => seen.forEach((each) => {
    const card = view.cards.get(each.target.dataset.metric);
    if (card) {
      card.inView = each.isIntersecting;
      if (card.inView) card.load();
    }
  }), { rootMargin: "200px" });
  update(view, new Set(place().run));
  return {
    update: (changed) => update(view, changed),
    destroy: () => { view.seen.disconnect(); view.cards.forEach((card) => card.destroy()); },
  };
}

async function update(view, changed) {
  const runs = place().run.filter((id) => rows.has(id));
  if (!runs.length) {
    view.cards.forEach((card) => card.destroy());
    view.cards.clear();
    view.asked = "";
    show(view.tools);
    show(view.below);
    show(view.note);
    show(view.grid, empty("No run is chosen", h("p", {}, "Tick runs in the list to lay their curves over each other.")));
    return;
  }
  const asked = JSON.stringify(runs);
  const grown = runs.some((id) => changed?.has(id));
  if (view.asked !== asked || grown) {
    view.asked = asked;
    try {
      view.about = await post("chosen", { runs });
    } catch (problem) {
      show(view.grid, empty("These runs cannot be read", h("p", {}, problem.message)));
      return;
    }
    if (view.asked !== asked) return;
  }
  if (!view.about) return;
  drawTools(view);
  drawCards(view, runs, grown);
  drawBelow(view, runs);
}

function drawTools(view) {
  const { about } = view;
  const { x, smooth, group, seeds } = place();
  const now = JSON.stringify([about.axes, about.settings.map((each) => each.path), x, group, seeds, about.metrics]);
  if (view.toolsNow === now) return;
  view.toolsNow = now;
  const axis = h("div", { class: "segments", role: "group", "aria-label": "X axis" }, about.axes.map((name) =>
    button(name, () => move({ x: name === "frames" ? "" : name }), { "aria-pressed": String((x || "frames") === name) })));
  const told = h("output", {}, smoothText(smooth));
  const range = h("input", { type: "range", min: "0", max: "0.99", step: "0.01", value: smooth || "0", oninput: (event) => {
    told.textContent = smoothText(event.target.value);
    move({ smooth: Number(event.target.value) ? event.target.value : "" }, { replace: true });
  } });
  const isSearch = place().run.some((id) => rows.get(id)?.search);
  const groups = [["", "each run"], ...(isSearch ? [["trial", "each trial"]] : []), ["spec", "spec"], ["algorithm", "algorithm"], ["env", "environment"],
    ...about.settings.map((each) => [each.path, each.name])];
  const by = select(groups, group, (value) => move({ group: value }));
  const each = h("input", { type: "checkbox", checked: seeds === "1", onchange: (event) => move({ seeds: event.target.checked ? "1" : "" }) });
  const open = button([icon("sliders"), "Metrics"], () => {
    view.chooser.hidden = !view.chooser.hidden;
    open.setAttribute("aria-expanded", String(!view.chooser.hidden));
  }, { "aria-expanded": String(!view.chooser.hidden) });
  show(view.tools, field("X axis", axis), field("Smoothing", h("span", { class: "range" }, range, told)), field("Group by", by),
    field("Seeds", h("span", { class: "switch" }, each, "show each")), open);
  drawChooser(view);
}

function smoothText(value) {
  return Number(value) ? Number(value).toFixed(2) : "off";
}

function drawChooser(view) {
  const wanted = chosenMetrics(view);
  const boxes = sections(view.about.metrics).map(([title, some]) => h("fieldset", {}, h("legend", {}, title), some.map((key) =>
    h("label", { class: "pick" }, h("input", { type: "checkbox", checked: wanted.includes(key), onchange: (event) => {
      const now = chosenMetrics(view);
      move({ metric: event.target.checked ? [...now, key] : now.filter((each) => each !== key) });
    } }), h("span", {}, metricName(key)), h("code", {}, key)))));
  show(view.chooser, boxes, button("Usual metrics", () => { move({ metric: [] }); drawChooser(view); }, { class: "link" }));
}

function chosenMetrics(view) {
  const { metric } = place();
  return metric.length ? metric : defaults(view.about.metrics);
}

function drawCards(view, runs, grown) {
  const wanted = chosenMetrics(view);
  for (const [metric, card] of view.cards) {
    if (!wanted.includes(metric)) {
      card.destroy();
      view.cards.delete(metric);
    }
  }
  const cards = wanted.map((metric) => {
    if (!view.cards.has(metric)) {
      const card = new Card(metric, () => drawNote(view));
      view.cards.set(metric, card);
      view.seen.observe(card.element);
    }
    return view.cards.get(metric);
  });
  const elements = cards.map((card) => card.element);
  if (elements.length !== view.grid.children.length || elements.some((each, at) => view.grid.children[at] !== each)) {
    show(view.grid, elements.length ? elements : empty("Nothing to draw yet", h("p", {}, "The chosen runs have written no metrics. This page shows the first row as it comes.")));
  }
  cards.forEach((card) => card.update(runs, grown, view.about.alerts));
}

function drawNote(view) {
  const card = [...view.cards.values()].find((each) => each.rows);
  if (!card) return;
  const unit = place().x || "frames";
  const [width, bands] = card.form;
  const how = width ? `Rows are averaged in buckets of ${compact(width)} ${unit}${bands ? "; a faint shade from lowest to highest marks a single seed" : ""}.` : "Every row is drawn.";
  const shade = bands ? ", its shade the 95% bootstrap interval of that mean" : "; of so many lines shades are left out";
  view.note.textContent = `${plural(card.rows, "metric row")}. ${how} A line is the mean over seeds where all have values${shade}. Drag to zoom, double-click to see all.`;
}

function drawBelow(view, runs) {
  const language = runs.find((id) => rows.get(id).tokens > 0 && rows.get(id).episodes);
  if (view.language !== language || !view.completions) {
    view.language = language;
    view.completions = language ? completionsPanel(language) : null;
  } else view.completions?.refresh();
  show(view.below, chosenTable(runs, view.about.settings), alertsPanel(view.about.alerts), view.completions?.element);
}

class Card {
  constructor(metric, onLoad) {
    this.metric = metric;
    this.onLoad = onLoad;
    this.lines = new Map();
    this.log = false;
    this.body = h("div", { class: "chart" });
    const name = metricName(metric);
    const log = button("log", () => { this.log = !this.log; log.setAttribute("aria-pressed", String(this.log)); this.draw(); },
      { class: "plain", "aria-pressed": "false", "aria-label": `${name}: logarithmic axis` });
    const wide = button(icon("expand"), () => { this.element.classList.toggle("wide"); this.draw(); }, { class: "plain", "aria-label": `${name}: wide chart` });
    this.element = h("section", { class: "card", "data-metric": metric, "aria-label": name },
      h("header", {}, h("h2", {}, name), h("code", {}, metric), h("span", { class: "card-tools" }, log, wide)), this.body);
    this.chart = new Chart(this.body, { unit: "frames" });
  }

  destroy() {
    this.chart.destroy();
    this.element.remove();
  }

  update(runs, grown, alerts) {
    this.alerts = alerts;
    const { x, group, seeds, smooth } = place();
    const asked = JSON.stringify([runs, x, group, seeds]);
    const kind = JSON.stringify([x, group, seeds, runs.length === 1, group ? runs : null]);
    if (kind !== this.kind) {
      this.lines.clear();
      this.form = null;
    }
    const isOld = asked !== this.asked || grown;
    Object.assign(this, { asked, kind, runs, isStale: this.isStale || isOld });
    if (isOld) this.load();
    else if (smooth !== this.smooth) this.draw();
    this.smooth = smooth;
  }

  // Ask for what is new; a chart that is out of view waits.
  async load() {
    if (!this.inView || !this.isStale || this.isLoading) return;
    this.isLoading = true;
    this.isStale = false;
    const { kind, runs } = this;
    const { x, group, seeds } = place();
    const have = Object.fromEntries([...this.lines].map(([key, line]) => [key, line.x.at(-1)]));
    try {
      const found = await post("series", { runs, metric: this.metric, x, group, seeds: seeds === "1" || runs.length === 1, have, form: this.form });
      if (kind === this.kind) {
        this.take(found);
        if (found.pending && found.pending !== this.pending) this.isStale = true; // more lines can be read
        this.pending = found.pending;
      } else this.isStale = true;
    } catch (problem) {
      show(this.chart.readings, h("span", { class: "at" }, problem.message));
    } finally {
      this.isLoading = false;
    }
    if (this.isStale) this.load();
  }

  take(found) {
    if (JSON.stringify(found.form) !== JSON.stringify(this.form)) this.lines.clear();
    this.form = found.form;
    this.rows = found.rows;
    const next = new Map();
    for (const line of found.lines) next.set(line.key, extended(this.lines.get(line.key) || NEW, line));
    this.lines = next;
    this.draw();
    this.onLoad();
  }

  draw() {
    const { x, group, smooth } = place();
    this.chart.options.unit = x || "frames";
    this.chart.options.height = this.element.classList.contains("wide") ? 420 : 220;
    const lines = [...this.lines.values()].map((line, at) => ({ ...line, label: group ? line.label : nameOf(line.key), slot: group ? at : slotOf(line.key) }));
    this.chart.draw(lines, { smooth: Number(smooth) || 0, log: this.log });
    this.chart.mark(placed(this.alerts, x || "frames"));
    this.chart.plot?.setSize(this.chart.size());
  }
}

// The alerts of the chosen runs on an axis, each with whose it is.
function placed(alerts, axis) {
  return Object.entries(alerts || {}).flatMap(([id, some]) => some.filter((each) => axis in each.at).map((each) =>
    ({ x: each.at[axis], kind: each.kind, text: `${each.message} · ${nameOf(id)} ${each.session}` })));
}

// The points that were there, up to where the new ones begin, and the new ones.
function extended(old, line) {
  const kept = line.x.length ? old.x.findIndex((x) => x >= line.x[0]) : old.x.length;
  const end = kept < 0 ? old.x.length : kept;
  const joined = (before, after) => (after === null ? (line.x.length ? null : before) : [...(before || new Array(end).fill(null)).slice(0, end), ...after]);
  const made = { ...line, x: joined(old.x, line.x) };
  for (const key of ["mean", "low", "high", "min", "max"]) made[key] = joined(old[key], line[key]);
  made.each = line.each.map((values, at) => joined(old.each[at], values));
  return made;
}
