// A chart of lines with bands on uPlot: mean and interval, readings at the pointer, one pointer for all charts.

import { compact, h, number, show } from "./dom.js";

const POINTER = uPlot.sync("runs");
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const MOST_READINGS = 8;
const FADED = 0.25;
const MARK_PIXELS = 12;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function colourOf(slot) {
  return token(`--series-${slot % 10}`);
}

// The same line without its noise: an exponential mean, corrected for its start.
function smoothed(values, weight) {
  if (!values || !weight) return values;
  let sum = 0, share = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    sum = sum * weight + value * (1 - weight);
    share = share * weight + (1 - weight);
    return sum / share;
  });
}

export class Chart {
  // `options`: {height, unit, sync, whole}: `whole` is an axis of whole numbers, such as turns.
  constructor(holder, options) {
    this.holder = holder;
    this.options = options;
    this.readings = h("div", { class: "readings" });
    this.canvas = h("div", { class: "canvas" });
    show(holder, this.readings, this.canvas);
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.canvas);
  }

  destroy() {
    this.resizing.disconnect();
    this.plot?.destroy();
  }

  // `lines`: [{label, slot, x, mean, low, high, min, max, each, marks}]: `marks` shows points, and only them for a colour.
  draw(lines, { smooth = 0, log = false } = {}) {
    this.lines = lines.filter((line) => line.x.length);
    const tables = this.lines.map((line) => {
      const band = line.low || line.min;
      return [line.x, smoothed(line.mean, smooth), ...(band ? [smoothed(line.low || line.min, smooth), smoothed(line.high || line.max, smooth)] : []),
        ...(line.each || []).map((values) => smoothed(values, smooth))];
    });
    const data = tables.length ? uPlot.join(tables) : [[], []];
    const shape = JSON.stringify([this.lines.map((line) => [line.label, line.slot, line.marks, !!line.low, !!line.min, (line.each || []).length]), log, this.theme()]);
    if (this.plot && this.shape === shape) this.plot.setData(data);
    else this.build(data, shape, log);
    this.read(null);
  }

  // `alerts`: [{x, kind, text}]: small marks on the x axis, with their text while one points at them.
  mark(alerts) {
    this.alerts = alerts;
    this.placeAlerts();
  }

  // Alerts that stand closer than a mark is wide share one.
  placeAlerts() {
    this.marks?.remove();
    const { min, max } = this.plot?.scales.x || {};
    const inside = (this.alerts || []).filter((each) => each.x >= min && each.x <= max).sort((a, b) => a.x - b.x);
    const together = [];
    for (const each of inside) {
      const left = this.plot.valToPos(each.x, "x");
      if (together.length && left - together.at(-1).left < MARK_PIXELS) together.at(-1).alerts.push(each);
      else together.push({ left, alerts: [each] });
    }
    this.marks = h("div", { class: "alert-marks" }, together.map((each) => this.alertMark(each)));
    this.plot?.over.append(this.marks);
  }

  alertMark({ left, alerts }) {
    const words = alerts.map((each) => `${each.kind}: ${each.text}`).join("\n");
    const told = h("ul", { class: "alert-told", hidden: true }, alerts.slice(0, MOST_READINGS).map((each) => h("li", {}, h("b", {}, each.kind), ` ${each.text}`)));
    const tell = (on) => () => { told.hidden = !on; };
    const isBad = alerts.some((each) => each.kind === "failed");
    return [h("button", { type: "button", class: isBad ? "alert-mark failed" : "alert-mark", style: { left: `${left}px` }, "aria-label": words,
      onmouseenter: tell(true), onfocus: tell(true), onmouseleave: tell(false), onblur: tell(false) }), told];
  }

  theme() {
    return token("--ink");
  }

  build(data, shape, log) {
    this.plot?.destroy();
    this.shape = shape;
    const series = [{}], bands = [];
    this.places = [];
    for (const line of this.lines) {
      const stroke = colourOf(line.slot), dash = DASHES[Math.floor(line.slot / 10) % DASHES.length];
      this.places.push(series.length);
      const isOnlyMarks = typeof line.marks === "string", fill = isOnlyMarks ? token(line.marks) : stroke;
      const points = { show: line.x.length === 1 || !!line.marks, size: isOnlyMarks ? 11 : 7, fill, stroke: fill };
      series.push({ stroke: isOnlyMarks ? "transparent" : stroke, width: 2, dash, spanGaps: true, points });
      if (line.low || line.min) {
        bands.push({ series: [series.length + 1, series.length], fill: `${stroke}${line.low ? "30" : "1c"}` });
        for (let end = 0; end < 2; end += 1) series.push({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false } });
      }
      for (const _ of line.each || []) series.push({ stroke: `${stroke}66`, width: 1, spanGaps: true, points: { show: false } });
    }
    if (series.length === 1) series.push({});
    const quiet = { stroke: token("--muted"), font: `11px ${token("--sans")}`, grid: { stroke: token("--grid"), width: 1 }, ticks: { show: false } };
    const values = (_, ticks) => ticks.map((tick) => (tick === null ? "" : compact(tick)));
    const sync = this.options.sync === false ? {} : { sync: { key: POINTER.key, scales: ["x", null] } };
    this.plot = new uPlot({
      ...this.size(),
      series, bands,
      scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: log ? { distr: 3 } : { range: yRange } },
      axes: [
        { ...quiet, grid: { show: false }, size: 26, gap: 4, space: 64, values, ...(this.options.whole ? { incrs: WHOLE } : {}) },
        { ...quiet, size: (u, ticks) => 14 + 6.6 * Math.max(1, ...(ticks || []).map((tick) => String(tick).length)), gap: 6, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : tickText(tick))) },
      ],
      legend: { show: false },
      focus: { alpha: FADED },
      cursor: { points: { size: 7, width: 0 }, drag: { x: true, y: false }, y: false, ...sync },
      hooks: { setCursor: [(plot) => this.read(plot.cursor.idx)], draw: [() => this.placeAlerts()] },
    }, data, this.canvas);
  }

  size() {
    return { width: Math.max(120, this.canvas.clientWidth), height: this.options.height || 220 };
  }

  resize() {
    if (this.plot && Math.abs(this.plot.width - this.canvas.clientWidth) > 1) this.plot.setSize(this.size());
  }

  // The value of each line at the pointer, else its last.
  read(at) {
    const told = this.lines.map((line, number_) => {
      const values = this.plot?.data[this.places[number_]] || [];
      return { line, place: this.places[number_], value: at === null || at === undefined ? lastOf(values) : nearest(values, at), at };
    });
    if (told.length > MOST_READINGS) told.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
    const kept = told.slice(0, MOST_READINGS).map((each) => this.reading(each));
    const more = told.length - kept.length;
    const x = at === null || at === undefined ? null : this.plot?.data[0][at];
    const where = x === null || x === undefined ? null : h("span", { class: "at" }, `${compact(x)} ${this.options.unit || ""}`);
    show(this.readings, kept, more > 0 ? h("span", { class: "at" }, `and ${more} more`) : null, where);
  }

  reading({ line, place, value }) {
    const focus = (on) => this.plot?.setSeries(on ? place : null, { focus: true });
    const interval = line.seeds > 1 ? `${line.seeds} seeds` : "";
    return h("span", { class: "reading", title: [line.label, interval].filter(Boolean).join(", "), onmouseenter: () => focus(true), onmouseleave: () => focus(false) },
      h("i", { style: { background: typeof line.marks === "string" ? token(line.marks) : colourOf(line.slot) } }), h("span", { class: "reading-name" }, line.label), typeof line.marks === "string" ? null : h("b", {}, number(value)));
  }
}

// A line that never changes stands in the middle, at its own scale.
function yRange(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const margin = Math.abs(high) / 10 || 1;
  return low === high ? [low - margin, high + margin] : uPlot.rangeNum(low, high, 0.08, true);
}

function tickText(tick) {
  return Math.abs(tick) >= 1e4 ? compact(tick) : `${Number(tick.toPrecision(6))}`;
}

function lastOf(values) {
  for (let at = values.length - 1; at >= 0; at -= 1) if (values[at] !== null && values[at] !== undefined) return values[at];
  return null;
}

function nearest(values, at) {
  for (let step = 0; step < 40; step += 1) {
    for (const place of [at - step, at + step]) if (values[place] !== null && values[place] !== undefined) return values[place];
  }
  return null;
}
