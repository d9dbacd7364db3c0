// How the score in each task went as training went on.

import { Chart } from "./chart.js";
import { button, empty, h, number, show } from "./dom.js";
import { dot } from "./panels.js";
import { move, place } from "./state.js";
import { ask, rows } from "./store.js";

export function mountHistory(main, focused) {
  const view = { now: "" };
  const update = async (changed) => {
    const id = focused(), axis = place().axis || "frames";
    const now = JSON.stringify([id, axis]);
    if (view.now === now && !changed?.has(id)) return;
    view.now = now;
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    try {
      draw(main, id, axis, await ask("history", { run: id, axis }));
    } catch (problem) {
      show(main, empty("This history cannot be shown", h("p", { role: "alert" }, problem.message)));
    }
  };
  show(main);
  update();
  return { update };
}

function draw(main, id, axis, found) {
  const over = [...new Set(found.histories.map((each) => each.over))].sort().join(" and ");
  const axes = h("div", { class: "segments", role: "group", "aria-label": "Against" }, found.axes.map((name) => button(name, () => move({ axis: name === "frames" ? "" : name }), { "aria-pressed": String(name === axis) })));
  const head = h("header", { class: "head" }, h("h1", {}, "Score history"), h("p", { class: "lede" }, dot(id), rows.get(id).id));
  if (!found.histories.length) return show(main, head, axes, empty(`No episode here has a score and ${axis}`));
  const grid = h("div", { class: "grid" });
  show(main, head, h("div", { class: "tools" }, axes), grid, h("p", { class: "note" }, `Shades are 95% intervals over ${over}; episodes that ended in an error have no score and count as 0.`));
  for (const task of new Set(found.histories.map((each) => each.task))) grid.append(card(task, found.histories.filter((each) => each.task === task), axis));
}

function card(task, some, axis) {
  const body = h("div", { class: "chart" });
  const lines = some.map((each, slot) => ({
    label: each.split, slot, x: each.points.map((point) => point.x), mean: each.points.map((point) => point.estimate.point),
    low: each.points.map((point) => point.estimate.low), high: each.points.map((point) => point.estimate.high),
  }));
  const ends = some.filter((each) => each.points.length).map((each) => {
    const first = each.points[0].estimate.point, last = each.points.at(-1).estimate.point;
    return each.points.length > 1 ? `${each.split} ${number(first)} to ${number(last)}` : `${each.split} ${number(last)}`;
  });
  queueMicrotask(() => new Chart(body, { unit: axis, sync: false }).draw(lines));
  return h("section", { class: "card", "aria-label": task }, h("header", {}, h("h2", {}, task), h("span", { class: "stamp" }, ends.join(" · "))), body);
}
