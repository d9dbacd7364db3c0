// The rows of all runs, kept up to date: only rows that changed travel.

const QUICK_MS = 2000;
const SLOW_MS = 6000;

export const rows = new Map();
export const store = { root: "", total: 0, unread: 0, version: 0, paused: false, failed: "", updated: 0 };
const listeners = new Set();
let timer = 0;

export function onRows(listener) {
  listeners.add(listener);
}

export async function ask(path, query = {}) {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return reply(await fetch(`/api/${path}?${words}`));
}

export async function post(path, body) {
  return reply(await fetch(`/api/${path}`, { method: "POST", body: JSON.stringify(body) }));
}

async function reply(response) {
  const found = await response.json();
  if (!response.ok) {
    const message = typeof found.error === "string" ? found.error : found.error?.message;
    throw new Error(message || `the server answered ${response.status}`);
  }
  return found;
}

export async function refresh() {
  clearTimeout(timer);
  let changed = new Set();
  try {
    const found = await ask("runs", { since: store.version });
    if (found.version < store.version) {
      rows.clear(); // another server has taken its place
      store.version = 0;
      return refresh();
    }
    Object.assign(store, { root: found.root, total: found.total, unread: found.unread, version: found.version, failed: "", updated: Date.now() });
    for (const row of found.rows) rows.set(row.id, row);
    for (const id of found.gone) rows.delete(id);
    changed = new Set([...found.rows.map((row) => row.id), ...found.gone]);
  } catch (problem) {
    store.failed = problem instanceof TypeError ? "The app has stopped answering; start `operant app` again." : problem.message;
    store.version = 0;
  }
  listeners.forEach((listener) => listener(changed));
  timer = setTimeout(tick, store.unread && !store.failed ? 0 : isLive() ? QUICK_MS : SLOW_MS);
}

function tick() {
  if (document.hidden || store.paused) timer = setTimeout(tick, 500);
  else refresh();
}

export function isLive() {
  for (const row of rows.values()) if (row.state === "running") return true;
  return false;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !store.paused) refresh();
});
