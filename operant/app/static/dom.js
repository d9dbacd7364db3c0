// Elements and numbers. Text always becomes a text node, so nothing that a run says can become markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name in element && !(element instanceof SVGElement) && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

const ICONS = {
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2 4h12M2 8h12M2 12h8",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z",
  sliders: "M3 5h6M12 5h1M3 11h1M7 11h6M10.5 3.5v3M5.5 9.5v3",
  expand: "M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5l-4.5 4.5M2.5 13.5L7 9",
  left: "M10 3L5 8l5 5",
  right: "M6 3l5 5-5 5",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
};

export function icon(name) {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

export function button(label, onclick, props = {}) {
  return h("button", { type: "button", class: "button", onclick, ...props }, label);
}

export function field(label, control, props = {}) {
  return h("label", { class: "field", ...props }, h("span", {}, label), control);
}

export function select(options, value, onchange, props = {}) {
  const made = options.map(([key, text]) => h("option", { value: key, selected: key === value }, text));
  return h("select", { onchange: (event) => onchange(event.target.value), ...props }, made);
}

export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), more);
}

export function tiles(values) {
  const cells = Object.entries(values).map(([name, value]) => h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value)));
  return h("dl", { class: "tiles" }, cells);
}

// ---- numbers, as the command line writes them

const SI = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function compact(value) {
  for (const [scale, letter] of SI) {
    if (Math.abs(value) >= scale * 0.9995) return `${Number((value / scale).toPrecision(3))}${letter}`;
  }
  return `${Number(value.toPrecision(3))}`;
}

export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e5 || (size > 0 && size < 1e-3)) return Number(value.toPrecision(3)).toExponential().replace("e+", "e");
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 5 : 4 });
}

export function duration(seconds) {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, "0");
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${two(Math.floor((whole % 86400) / 3600))} h`;
}

export function ago(created) {
  const then = Date.parse(created || "");
  if (Number.isNaN(then)) return "";
  const seconds = Math.max(0, (Date.now() - then) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// `20261118-032240-2` as `18 Nov 03:22 (2)`; what is no stamp stays as it is.
export function stampText(stamp) {
  const found = /^\d{4}(\d\d)(\d\d)-(\d\d)(\d\d)\d\d(?:-(\d+))?$/.exec(stamp);
  if (!found || !MONTHS[found[1] - 1]) return stamp;
  return `${Number(found[2])} ${MONTHS[found[1] - 1]} ${found[3]}:${found[4]}${found[5] ? ` (${found[5]})` : ""}`;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function announce(text) {
  document.getElementById("announce").textContent = text;
}
