// One run: its sessions, settings, alerts and where it came from; and what its policy wrote.

import { announce, button, compact, duration, empty, h, icon, number, plural, show, tiles } from "./dom.js";
import { completion, dot, right, stateMark, table } from "./panels.js";
import { ask, rows } from "./store.js";

export function mountRun(main, focused) {
  const view = { seen: "" };
  const update = async (changed) => {
    const id = focused();
    if (view.seen === id && !changed?.has(id)) return;
    view.seen = id;
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    try {
      drawRun(main, id, await ask("run", { run: id }));
    } catch (problem) {
      show(main, empty("This run cannot be read", h("p", {}, problem.message)));
    }
  };
  show(main);
  update();
  return { update };
}

function drawRun(main, id, found) {
  const { row } = found;
  const head = h("header", { class: "head" }, h("h1", {}, dot(id), row.name, h("span", { class: "stamp" }, ` ${row.stamp}`)),
    h("p", { class: "lede" }, [row.algorithm, row.env && `on ${row.env}`].filter(Boolean).join(" "), " ", stateMark(row.state), row.tags.map((tag) => h("span", { class: "tag" }, `#${tag}`))));
  const facts = tiles({
    [row.score_is_final ? "final score" : "score so far"]: row.score ? row.score.text : "none yet",
    seeds: `${row.sessions_done} of ${row.sessions} done`,
    frames: row.max_frame ? `${compact(row.frames)} of ${compact(row.max_frame)}` : compact(row.frames),
    "training time": duration(row.seconds),
    ...(row.tokens ? { tokens: compact(row.tokens) } : {}),
    ...(row.trials > 1 ? { trials: row.trials } : {}),
    ...(found.provenance.commit ? { commit: `${found.provenance.commit.slice(0, 7)}${found.provenance.dirty ? " with changes" : ""}` } : {}),
  });
  const bad = [...(row.error ? [row.error] : []), ...found.faults].map((text) => h("p", { class: "error", role: "alert" }, text));
  const columns = h("div", { class: "columns" }, sessionsPanel(found), alertPanel(found), commandsPanel(found), settingsPanel(found));
  show(main, head, facts, bad, columns);
}

function sessionsPanel(found) {
  const heads = ["Session", right("Seed"), "State", right("Frames"), right("Time"), right("Return"), right("Score")];
  const body = found.sessions.map((each) => [each.label, right(each.seed ?? "–"), stateMark(each.state, each.doing || each.state), right((each.frames || 0).toLocaleString("en")),
    right(each.time || "–"), right(number(each.return)), right(each.score === undefined || each.score === null ? "–" : `${each.is_final ? "" : "~ "}${number(each.score)}`)]);
  const more = found.more_sessions ? h("p", { class: "note" }, `and ${plural(found.more_sessions, "more session")}`) : null;
  return h("section", { class: "panel" }, h("h2", {}, "Sessions"), table(heads, body, { label: "Sessions" }), more);
}

function alertPanel(found) {
  const list = found.alerts.map((each) => h("li", {}, h("b", {}, each.kind), h("span", { class: "alert-words" }, each.message), h("span", { class: "stamp" }, each.session)));
  return h("section", { class: "panel" }, h("h2", {}, "Alerts", h("span", { class: "count" }, list.length)), list.length ? h("ul", { class: "alerts" }, list) : h("p", { class: "note" }, "None."));
}

function commandsPanel(found) {
  const commands = [`operant show ${found.place}`, `operant plot ${found.place}`, ...(found.row.state === "stopped" ? [`operant resume ${found.place}`] : [])];
  const lines = commands.map((text) => h("div", { class: "command" }, h("code", {}, text), button(icon("copy"), () => {
    navigator.clipboard?.writeText(text);
    announce("Copied");
  }, { class: "plain", "aria-label": `Copy ${text}` })));
  return h("section", { class: "panel" }, h("h2", {}, "In a terminal"), lines);
}

function settingsPanel(found) {
  const all = Object.entries(found.settings);
  const list = h("dl", { class: "settings" });
  const draw = (text) => show(list, all.filter(([key, value]) => `${key} ${value}`.toLowerCase().includes(text)).map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
  draw("");
  const filter = h("input", { type: "search", class: "search", placeholder: "Filter settings", "aria-label": "Filter settings", oninput: (event) => draw(event.target.value.toLowerCase()) });
  return h("section", { class: "panel" }, h("h2", {}, "Settings", h("span", { class: "count" }, all.length)), filter, list);
}

export function mountCompletions(main, focused) {
  const view = { seen: "", frames: -1 };
  const update = async () => {
    const id = focused();
    const frames = rows.get(id)?.frames;
    if (view.seen === id && view.frames === frames) return;
    Object.assign(view, { seen: id, frames });
    if (!id) return show(main, empty("No run is chosen", h("p", {}, "Choose one in the list.")));
    const found = await ask("completions", { run: id });
    const head = h("header", { class: "head" }, h("h1", {}, dot(id), "Completions"), h("p", { class: "lede" }, `${rows.get(id).name}: the newest ${found.samples.length} with words of ${plural(found.count, "episode")}`));
    show(main, head, found.samples.length ? found.samples.map((sample) => completion(id, sample)) : empty("No words were written here", h("p", {}, "Completions appear when a language policy has been evaluated or has trained.")));
  };
  show(main);
  update();
  return { update };
}
