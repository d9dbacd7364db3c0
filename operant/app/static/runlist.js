// The list of runs: filters, sort, and which are chosen. Only the rows in view get their small curves.

import { ago, announce, button, compact, h, icon, number, plural, select, show, stampText, svg } from "./dom.js";
import { move, place } from "./state.js";
import { post, rows, store } from "./store.js";

const STATES = ["running", "done", "stopped", "failed", "new", "record", "unreadable"];
const SORTS = [["newest", "Newest first"], ["score", "Highest score"], ["name", "Name"], ["frames", "Most frames"], ["state", "State"]];
const PAGE = 60;
const SLOTS = 10;

const slots = new Map();
const sparks = new Map();
let shown = PAGE;
let made = new Map();

export function slotOf(id) {
  if (!slots.has(id)) {
    const taken = new Set(place().run.filter((each) => slots.has(each)).map((each) => slots.get(each)));
    let free = 0;
    while (taken.has(free)) free += 1;
    slots.set(id, free);
  }
  return slots.get(id);
}

export function colour(slot) {
  return `var(--series-${slot % SLOTS})`;
}

// What a run is called among those that are chosen: with its stamp where the name alone would not tell.
export function nameOf(id) {
  const row = rows.get(id);
  if (!row) return id;
  const alike = place().run.filter((each) => rows.get(each)?.name === row.name).length;
  return alike > 1 && row.stamp ? `${row.name} ${stampText(row.stamp)}` : row.name;
}

export function setChosen(ids, options) {
  for (const id of [...slots.keys()]) if (!ids.includes(id)) slots.delete(id);
  move({ run: ids, focus: ids.includes(place().focus) ? place().focus : "", episode: "", other: "", view: leaveEpisode() }, options);
  announce(`${plural(ids.length, "run")} chosen`);
}

function leaveEpisode() {
  return ["timeline", "compare"].includes(place().view) ? "episodes" : place().view;
}

export function toggle(id) {
  const { run } = place();
  setChosen(run.includes(id) ? run.filter((each) => each !== id) : [...run, id]);
}

function matching() {
  const { q, algo, env, tag, state, sort, archived } = place();
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...rows.values()].filter((row) => {
    const text = `${row.id} ${row.algorithm || ""} ${row.env || ""} ${row.tags.join(" ")}`.toLowerCase();
    return words.every((word) => text.includes(word)) && (!algo || row.algorithm === algo) && (!env || row.env === env)
      && (!tag || row.tags.includes(tag)) && (archived || !row.archived);
  });
  const kept = found.filter((row) => !state.length || state.includes(row.state));
  return { found, kept: kept.sort(ORDER[sort] || ORDER.newest) };
}

const recent = (a, b) => (b.created || "").localeCompare(a.created || "") || b.id.localeCompare(a.id);
const ORDER = {
  newest: recent,
  score: (a, b) => (b.score?.point ?? -Infinity) - (a.score?.point ?? -Infinity) || recent(a, b),
  name: (a, b) => a.name.localeCompare(b.name) || recent(a, b),
  frames: (a, b) => b.frames - a.frames || recent(a, b),
  state: (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || recent(a, b),
};

export function mountList(side) {
  const search = h("input", {
    type: "search", placeholder: "Filter runs", "aria-label": "Filter runs by text", value: place().q, class: "search",
    oninput: (event) => { shown = PAGE; move({ q: event.target.value }, { replace: true }); },
  });
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
  const parts = {
    folder: h("span", { class: "folder" }),
    facets: h("div", { class: "facets" }),
    states: h("div", { class: "states", role: "group", "aria-label": "Filter by state" }),
    list: h("ul", { class: "runs", onkeydown: walk, "aria-label": "Runs" }),
    more: h("div", { class: "more" }),
    foot: h("div", { class: "side-foot" }),
  };
  const brand = h("div", { class: "brand" }, mark(), h("span", { class: "wordmark" }, "operant"), parts.folder,
    button(icon("close"), () => document.body.classList.remove("side-open"), { class: "plain only-narrow", "aria-label": "Close the list of runs" }));
  show(side, brand, h("div", { class: "side-tools" }, search, parts.facets, parts.states),
    h("div", { class: "scroll" }, parts.list, parts.more), parts.foot);
  new IntersectionObserver((seen) => {
    if (seen.some((each) => each.isIntersecting) && shown < matching().kept.length) {
      shown += PAGE;
      drawList(parts);
    }
  }, { root: side.querySelector(".scroll"), rootMargin: "400px" }).observe(parts.more);
  return () => drawList(parts);
}

function mark() {
  const path = svg("path", { d: "M3 17c4 0 4-10 8-10s4 5 10-3" });
  return svg("svg", { class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true" }, path, svg("circle", { cx: 20.4, cy: 4.6, r: 2.6 }));
}

function drawList(parts) {
  const { found, kept } = matching();
  parts.folder.textContent = store.root.split("/").slice(-2).join("/");
  parts.folder.title = store.root;
  drawFacets(parts.facets);
  drawStates(parts.states, found);
  const visible = kept.slice(0, shown);
  const next = new Map();
  for (const row of visible) next.set(row.id, keptRow(row));
  made = next;
  parts.list.replaceChildren(...[...next.values()].map((each) => each.element));
  const left = kept.length - visible.length;
  parts.more.textContent = store.unread ? `Reading ${plural(store.unread, "more run")} …` : left > 0 ? `${plural(left, "more run")}` : kept.length ? "" : "No run matches.";
  drawFoot(parts.foot, kept);
  loadSparks(visible);
}

function keptRow(row) {
  const chosen = place().run.includes(row.id);
  const mark = JSON.stringify([row, chosen, chosen && slotOf(row.id), ago(row.created), sparks.get(row.id)?.length]);
  const old = made.get(row.id);
  return old && old.mark === mark ? old : { mark, element: rowElement(row, chosen) };
}

function rowElement(row, chosen) {
  const tint = chosen ? { "--tint": colour(slotOf(row.id)) } : {};
  const box = h("input", { type: "checkbox", checked: chosen, onchange: () => toggle(row.id), "data-run": row.id });
  const facts = [stampText(row.stamp), row.tags.length ? `#${row.tags.join(" #")}` : ""].filter(Boolean).join("  ");
  const score = row.score ? h("span", { class: "score", title: row.score.text }, `${row.score_is_final ? "" : "~"}${number(row.score.point)}`) : h("span", { class: "score none" }, "–");
  const state = h("span", { class: `state ${row.state}` }, stateWords(row));
  const label = h("label", { class: "run-label", title: row.id }, box,
    h("span", { class: "run-name" }, row.name), score,
    h("span", { class: "run-facts" }, state, h("span", { class: "stamp" }, facts), h("span", {}, ago(row.created))),
    spark(sparks.get(row.id) || []));
  const only = button("only", () => setChosen([row.id]), { class: "only", title: "Choose only this run", "aria-label": `Choose only ${row.id}` });
  return h("li", { class: chosen ? "run chosen" : "run", vars: tint }, label, only);
}

function stateWords(row) {
  if (row.state === "running" && row.max_frame) return `running ${Math.min(99, Math.floor((100 * row.frames) / row.max_frame))}%`;
  return row.state;
}

export function spark(values, width = 64, height = 20) {
  const art = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  if (values.length > 1) {
    const low = Math.min(...values), high = Math.max(...values), span = high - low || 1;
    const points = values.map((value, at) => `${((at / (values.length - 1)) * (width - 2) + 1).toFixed(1)},${(height - 2 - ((value - low) / span) * (height - 4)).toFixed(1)}`);
    art.append(svg("polyline", { points: points.join(" ") }));
  }
  return art;
}

function drawFacets(holder) {
  const values = (pick) => [...new Set([...rows.values()].flatMap(pick).filter(Boolean))].sort();
  const facets = [["algo", "algorithm", values((row) => row.algorithm)], ["env", "environment", values((row) => row.env)], ["tag", "tag", values((row) => row.tags)]];
  const archived = [...rows.values()].filter((row) => row.archived).length;
  const now = JSON.stringify([facets, place().algo, place().env, place().tag, place().sort, archived, place().archived]);
  if (holder.dataset.now === now) return;
  holder.dataset.now = now;
  const chosen = facets.filter(([, , all]) => all.length > 1 || (all.length === 1 && all !== "tag")).map(([key, label, all]) =>
    all.length ? select([["", `any ${label}`], ...all.map((each) => [each, each])], place()[key], (value) => move({ [key]: value }, { replace: true }), { "aria-label": label }) : null);
  const order = select(SORTS, place().sort || "newest", (value) => move({ sort: value === "newest" ? "" : value }, { replace: true }), { "aria-label": "Sort" });
  const old = archived ? button(`${place().archived ? "Hide" : "Show"} ${archived} archived`, () => move({ archived: place().archived ? "" : "1" }), { class: "link" }) : null;
  show(holder, chosen, order, old);
}

// The counts of the states add up to the number of all runs that the other filters leave.
function drawStates(holder, found) {
  const chosen = place().state;
  const chip = (label, count, states) => {
    const isOn = states ? chosen.includes(label) : !chosen.length;
    const onclick = () => move({ state: !states ? [] : isOn ? chosen.filter((each) => each !== label) : [...chosen, label] }, { replace: true });
    return button([h("span", {}, label), h("b", {}, count.toLocaleString("en"))], onclick, { class: `chip ${label}`, "aria-pressed": String(isOn) });
  };
  const counts = STATES.map((state) => [state, found.filter((row) => row.state === state).length]).filter(([, count]) => count);
  show(holder, chip("all", found.length, false), counts.map(([state, count]) => chip(state, count, true)));
}

function drawFoot(holder, kept) {
  const { run } = place();
  const frames = run.reduce((sum, id) => sum + (rows.get(id)?.frames || 0), 0);
  const many = kept.filter((row) => row.rows);
  show(holder, h("span", {}, `${plural(run.length, "run")} chosen, ${compact(frames)} frames`),
    button("None", () => setChosen([]), { class: "link", disabled: !run.length }),
    button(`All ${many.length.toLocaleString("en")}`, () => setChosen(many.map((row) => row.id)), { class: "link", disabled: !many.length, title: "Choose every run that the filters leave" }));
}

// Arrow keys walk through the list.
function walk(event) {
  if (!["ArrowDown", "ArrowUp"].includes(event.key)) return;
  const boxes = [...event.currentTarget.querySelectorAll("input")];
  const next = boxes[boxes.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

let asked = false;
async function loadSparks(visible) {
  const wanted = visible.filter((row) => row.rows && sparks.get(row.id)?.frames !== row.frames).map((row) => row.id).slice(0, PAGE);
  if (asked || !wanted.length) return;
  asked = true;
  try {
    const found = await post("sparks", { runs: wanted });
    for (const id of wanted) {
      const values = found.sparks[id] || [];
      values.frames = rows.get(id)?.frames;
      sparks.set(id, values);
      const row = rows.get(id);
      const old = made.get(id);
      if (row && old) {
        const fresh = { mark: "", element: rowElement(row, place().run.includes(id)) };
        if (!old.element.contains(document.activeElement)) {
          old.element.replaceWith(fresh.element);
          made.set(id, fresh);
        }
      }
    }
  } finally {
    asked = false;
  }
}
