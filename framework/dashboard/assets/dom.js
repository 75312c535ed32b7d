// Elements and words. Whatever comes from objects becomes text, never markup.

/** An element with attributes, listeners (onclick …) and children; strings become text. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = (id) => document.getElementById(id);

/** Sets text only where it differs: what is not touched costs no layout. */
export function text(element, words) {
  const wanted = String(words ?? "");
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function attr(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function cls(element, name) {
  if (element.className !== name) element.className = name;
}

/** Makes the children of a list those of `items`, each made once and then updated. */
export function keyed(parent, items, key, make, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let before = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let element = old.get(name);
    if (element) old.delete(name);
    else {
      element = make(item);
      element.dataset.key = name;
    }
    update?.(element, item);
    if (element === before) before = before.nextElementSibling;
    else parent.insertBefore(element, before);
  }
  for (const gone of old.values()) gone.remove();
}

// the server's clock as far as we know it
let ahead = 0;
export const setNow = (ms) => { ahead = ms - Date.now(); };
export const now = () => Date.now() + ahead;

/** Numbers stay beside their units. */
export const span = (ms) => roughly(ms).replaceAll(" ", "\u00a0");
function roughly(ms) {
  if (ms === null || ms === undefined) return "";
  const s = Math.max(0, ms) / 1000;
  if (!(s > 0.0000005)) return "0 ms";
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${(s * 1000).toPrecision(s < 0.1 ? 2 : 3) * 1} ms`;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s < 600 ? ` ${Math.floor(s % 60)} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}
/** Whole seconds: for what counts on by itself. */
export const coarse = (ms) => span(Math.max(0, Math.round(ms / 1000)) * 1000).replace(/^(\d+)\.0\u00a0s$/, "$1\u00a0s").replace("0\u00a0ms", "0\u00a0s");
/** Whether somebody is about to copy words of this element, which must then not be put anew. */
export const marked = (element) => !getSelection().isCollapsed && element.contains(getSelection().anchorNode);
export const ago = (at) => (at ? `${coarse(now() - at)} ago` : "");
/** How long something has lasted. */
export const lasting = (at) => `for ${coarse(now() - at)}`;
export const count = (n) => (n ?? 0).toLocaleString("en");
export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
export function bytes(n) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= size) return `${(n / size).toPrecision(3)} ${unit}`;
  return `${n ?? 0} B`;
}
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

const SIGNS = { running: "●", starting: "◌", backoff: "↻", suspended: "Ⅱ", blocked: "■", stopping: "◍", stopped: "○", failed: "✕", degraded: "▲", queued: "◔", waiting: "◷", held: "◫", parked: "✕", idle: "○", unknown: "?", undecodable: "▲" };
export const sign = (state) => SIGNS[state] ?? "·";

export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));

/** How an exit of an actor reads. */
export function exit(e) {
  if (!e) return "";
  switch (e.exit) {
    case "panic": return `panicked${e.location ? ` at ${e.location}` : ""}: ${e.message}`;
    case "error": return `failed ${e.kind === "fatal" ? "for good" : "for now"}: ${e.message}`;
    case "escalated": return `gave up because ${e.child} ${exit(e.cause)}`;
    case "normal": return "ended normally";
    case "shutdown": return "stopped as asked";
    case "killed": return "was killed";
    case "stuck": return "hung";
    default: return e.exit;
  }
}

export async function api(path) {
  const answer = await fetch(`/api/v1/${path}`);
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error ?? answer.statusText), { code: answer.status });
  return body;
}

export const keyPath = (controller, key) => [controller, ...key.split("/")].map(encodeURIComponent).join("/");
