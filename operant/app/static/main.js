// The frame around every view: tabs, the chosen runs, light and dark, and keeping up with what is written.

import { mountCurves } from "./curves.js";
import { announce, button, empty, h, icon, plural, show } from "./dom.js";
import { dot, stateMark } from "./panels.js";
import { mountList, nameOf, setChosen, toggle } from "./runlist.js";
import { move, onMove, place } from "./state.js";
import { isLive, onRows, refresh, rows, store } from "./store.js";

const MOST_FIRST = 6;
const VIEWS = {
  curves: { title: "Curves", mount: mountCurves },
  run: { title: "Run", from: "./run.js", of: "mountRun" },
  completions: { title: "Completions", from: "./run.js", of: "mountCompletions" },
  episodes: { title: "Episodes", from: "./episodes.js", of: "mountEpisodes" },
  timeline: { title: "Episode", from: "./trajectory.js", of: "mountTimeline", under: "episodes" },
  compare: { title: "Compare", from: "./trajectory.js", of: "mountCompare", under: "episodes" },
  tree: { title: "Search tree", from: "./tree.js", of: "mountTree" },
  history: { title: "Score history", from: "./history.js", of: "mountHistory" },
  trials: { title: "Trials", from: "./trials.js", of: "mountTrials" },
};
const MANY = new Set(["curves"]);

const side = document.getElementById("side");
const main = document.getElementById("main");
let view = null;
let drawRuns = () => {};

export function focused() {
  const { run, focus } = place();
  const known = run.filter((id) => rows.has(id));
  return known.includes(focus) ? focus : known.find((id) => rows.get(id).rows || rows.get(id).episodes) || known[0] || "";
}

function drawTop() {
  const now = VIEWS[place().view] ? place().view : "curves";
  const tabs = Object.entries(VIEWS).filter(([, each]) => !each.under).map(([name, each]) =>
    h("a", { href: "#", "aria-current": name === (VIEWS[now].under || now) ? "page" : null, onclick: (event) => { event.preventDefault(); move({ view: name, episode: "", other: "" }); } }, each.title));
  const live = store.failed ? h("span", { class: "live failed" }, "not connected")
    : button([h("i"), store.paused ? "paused" : isLive() ? "live" : "up to date"], () => {
      store.paused = !store.paused;
      announce(store.paused ? "Paused" : "Live");
      drawTop();
      if (!store.paused) refresh();
    }, { class: `live ${store.paused ? "paused" : isLive() ? "running" : ""}`, title: store.paused ? "Follow what is written again" : "Follows what is written; click to pause", "aria-pressed": String(!store.paused) });
  const theme = button(icon("moon"), flipTheme, { class: "plain", "aria-label": "Light or dark" });
  const open = button([icon("menu"), h("span", {}, "Runs"), h("b", { class: "badge" }, place().run.length)], () => {
    document.body.classList.add("side-open");
    side.querySelector("input").focus();
  }, { class: "button only-narrow", "aria-label": "Open the list of runs" });
  show(document.getElementById("top"), open, h("nav", { class: "tabs", "aria-label": "Views" }, tabs), h("div", { class: "top-end" }, live, theme));
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  document.title = `${VIEWS[now].title} · Operant`;
}

function drawStrip() {
  const strip = document.getElementById("strip");
  const { view: name, run } = place();
  const lone = !MANY.has(name);
  const now = focused();
  const missing = run.filter((id) => !rows.has(id) && !store.unread && store.updated);
  const chips = run.filter((id) => rows.has(id)).map((id) => {
    const row = rows.get(id);
    const pick = button([dot(id), h("span", {}, nameOf(id)), row.state === "running" ? stateMark("running") : null],
      () => move(lone ? { focus: id, episode: "", other: "" } : { view: "run", focus: id }), { class: "pill-name", title: id, "aria-pressed": lone ? String(id === now) : null });
    return h("span", { class: lone && id === now ? "pill now" : "pill" }, pick,
      button(icon("close"), () => toggle(id), { class: "plain", "aria-label": `Leave out ${id}` }));
  });
  const lost = missing.map((id) => h("span", { class: "pill lost", role: "alert" }, `There is no run ${JSON.stringify(id)} under ${store.root}.`, button(icon("close"), () => toggle(id), { class: "plain", "aria-label": "Forget it" })));
  show(strip, store.failed ? h("span", { class: "pill lost", role: "alert" }, store.failed) : null, lost, chips);
}

async function drawView(changed) {
  const wanted = VIEWS[place().view] ? place().view : "curves";
  if (!rows.size) {
    view = null;
    main.dataset.view = "";
    if (store.updated && !store.unread) show(main, nothingYet());
    return;
  }
  if (main.dataset.view === wanted && view) return view.update(changed);
  view?.destroy?.();
  view = null;
  main.dataset.view = wanted;
  const each = VIEWS[wanted];
  const mount = each.mount || (await import(each.from))[each.of];
  if (main.dataset.view !== wanted || view) return;
  view = mount(main, focused);
  setTimeout(() => { if (!main.children.length) show(main, h("p", { class: "note" }, "Reading …")); }, 250);
}

function nothingYet() {
  const command = h("pre", { class: "command" }, "operant train ppo_cartpole");
  return empty("Nothing here yet", h("p", {}, "There is no run under ", h("code", {}, store.root), ". Start one, and this page will show it:"), command);
}

// Without a run in the address: those that run now, else the newest that has something to show.
function chooseFirst() {
  if (place().run.length || !rows.size || chooseFirst.done) return false;
  const newest = [...rows.values()].filter((row) => !row.archived && (row.rows || row.episodes));
  const live = newest.filter((row) => row.state === "running").slice(0, MOST_FIRST);
  const first = live.length ? live : newest.filter((row) => row.rows).slice(0, 1);
  if (!first.length && store.unread) return false;
  chooseFirst.done = true;
  const some = first.length ? first : newest.slice(0, 1);
  if (some.length) setChosen(some.map((row) => row.id), { replace: true });
  return some.length > 0;
}

function flipTheme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  main.dataset.view = "";
  drawView();
}

function draw(changed) {
  drawTop();
  drawStrip();
  drawRuns();
  drawView(changed);
}

if (localStorage.getItem("theme")) document.documentElement.dataset.theme = localStorage.getItem("theme");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { main.dataset.view = ""; drawView(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("keydown", (event) => { if (event.key === "Escape") document.body.classList.remove("side-open"); });
drawRuns = mountList(side);
onMove(() => draw(null));
onRows((changed) => {
  if (chooseFirst()) return;
  if (changed.size || store.failed || !onRows.drawn) draw(changed);
  else drawTop();
  onRows.drawn = true;
});
drawTop();
refresh();
