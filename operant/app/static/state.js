// Where the page is: all of it lies in the address, so that a link shows a colleague the same.
// It is the part after "#", which browsers keep to themselves: any number of runs fits.

const LISTS = ["run", "metric", "state"];
const SINGLE = ["view", "focus", "episode", "other", "x", "smooth", "group", "seeds", "q", "algo", "env", "tag", "sort", "axis", "archived"];
const listeners = new Set();

let here = parse();

export function place() {
  return here;
}

export function onMove(listener) {
  listeners.add(listener);
}

// Move to another place; `replace` leaves no step for the browser's Back button.
export function move(changes, { replace = false } = {}) {
  const next = { ...here, ...changes };
  const text = address(next);
  if (text === address(here)) return;
  history[replace ? "replaceState" : "pushState"](null, "", text);
  here = next;
  listeners.forEach((listener) => listener(here));
}

export function address(wanted) {
  const words = [];
  const add = (key, value) => words.push(`${key}=${encodeURIComponent(value).replaceAll("%2F", "/")}`);
  for (const key of SINGLE) if (wanted[key]) add(key, wanted[key]);
  for (const key of LISTS) for (const value of wanted[key] || []) add(key, value);
  return words.length ? `#${words.join("&")}` : "#";
}

function parse() {
  const text = location.hash.includes("=") ? location.hash.slice(1) : location.search.slice(1);
  const words = new URLSearchParams(text);
  const found = {};
  for (const key of SINGLE) found[key] = words.get(key) || "";
  for (const key of LISTS) found[key] = [...new Set(words.getAll(key).filter(Boolean))];
  found.view = found.view || (found.other ? "compare" : found.episode ? "timeline" : "curves");
  return found;
}

addEventListener("popstate", () => {
  if (location.hash === "#main") return;
  here = parse();
  listeners.forEach((listener) => listener(here));
});

if (location.search && !location.hash) history.replaceState(null, "", `/${address(here)}`);
