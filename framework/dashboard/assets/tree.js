// The supervision tree: one row per actor, wide levels as counts, with the keyboard of a tree.
import { $, ago, api, attr, clock, cls, coarse, count, exit, facts, h, keyPath, keyed, marked, now, plural, sign, text } from "./dom.js";
import { restart, unlocked } from "./actions.js";

/** Children that are shown of a wide level at first, and more at each step. */
const WIDE = 40;
const STATES = ["running", "queued", "waiting", "held", "parked"];

const open = new Map();
const room = new Map();
const handled = new Map();
const restarts = new Map();
const flashing = new Map();
const keysOf = new Map();
let seen = null;
let rows = [];
let at = "root";
let wanted = null;

const TROUBLED = new Set(["backoff", "blocked", "failed", "degraded", "suspended"]);
const stateOf = (node) => (node.degraded && node.state.state === "running" ? "degraded" : node.state.state);
const isSupervisor = (node) => node.kind?.type === "supervisor";

function troubled(node) {
  return TROUBLED.has(stateOf(node)) || node.children.some(troubled);
}

function isOpen(row) {
  return open.get(row.path) ?? row.opens;
}

/** Rows of the tree as it is shown, top down. */
function flatten(overview) {
  const found = [];
  const controllers = new Map(overview.controllers.map((one) => [one.path, one]));
  const add = (row, children) => {
    row.open = children && isOpen(row);
    row.parent = children !== null;
    found.push(row);
    if (row.open) children();
  };
  const wide = (items, path, level, one) => {
    const most = room.get(path) ?? WIDE;
    const shown = items.length > most + 5 ? most : items.length;
    for (const item of items.slice(0, shown)) one(item);
    if (shown < items.length) {
      add({ path: `${path}/…`, level, kind: "more", name: `${count(items.length - shown)} more`, grow: path }, null);
    }
  };
  const keys = (controller, level) => {
    for (const state of STATES) {
      const n = state === "queued" ? controller.queued.user + controller.queued.normal + controller.queued.low : controller[state];
      if (!n) continue;
      const path = `${controller.path}/keys:${state}`;
      add({ path, level, kind: "group", state, name: `${plural(n, "key")} ${state}`, opens: n <= 8, controller: controller.name, set: state }, () => {
        const known = keysOf.get(path);
        // the counts are newer
        const shown = (known?.keys ?? []).filter((key) => key.state === state);
        for (const key of shown) {
          add({ path: `${path}/${key.key}`, level: level + 1, kind: "key", state: key.state, name: key.key, due: key.next_ms, since: key.since_ms, hint: key.failures ? `failed ${key.failures}×` : "", key }, null);
        }
        const more = n - shown.length;
        if (known?.more && more > 0) add({ path: `${path}/…`, level: level + 1, kind: "more", name: `${count(more)} more: search them`, href: `#/keys?controller=${encodeURIComponent(controller.name)}&state=${state}` }, null);
      });
    }
  };
  const walk = (node, level) => {
    const controller = controllers.get(node.path);
    const state = stateOf(node);
    const inner = node.children.length > 0 || controller;
    const row = {
      path: node.path, level, kind: isSupervisor(node) ? "supervisor" : "actor", name: node.id, node, state,
      due: node.state.until_ms === undefined ? null : overview.at_ms + node.state.until_ms,
      opens: level < 3 || Boolean(controller) || node.children.some(troubled),
    };
    if (inner && level > 2) row.hint = plural(node.children.length, "actor");
    add(row, inner ? () => {
      wide(node.children, node.path, level + 1, (child) => walk(child, level + 1));
      if (controller) keys(controller, level + 1);
    } : null);
  };
  if (overview.tree.root) walk(overview.tree.root, 1);
  for (const left of overview.tree.left_behind) walk({ ...left, degraded: "it could not be ended and still runs", id: `${left.path} (left behind)` }, 1);
  return found;
}

function make(row) {
  const element = h("div", { role: "treeitem", tabindex: "-1" },
    h("span", { class: "name" }, h("span", { class: "twist", "aria-hidden": "true" }), h("span", { class: "dot", "aria-hidden": "true" }), h("b"), h("span", { class: "hint" })),
    h("span", { class: "state" }), h("span", { class: "num c-restarts" }), h("span", { class: "num c-inbox" }), h("span", { class: "num c-rate" }), h("span", { class: "up" }));
  element.style.setProperty("--level", row.level);
  element.firstChild.style.paddingLeft = `${(row.level - 1) * 1.15}rem`;
  element.addEventListener("click", (event) => {
    $("view-tree").classList.add("chosen");
    focus(row.path);
    const current = rows.find((one) => one.path === row.path);
    if (event.target.classList.contains("twist") || current?.kind === "group" || current?.kind === "more") enter(current);
  });
  element.addEventListener("dblclick", () => enter(rows.find((one) => one.path === row.path)));
  return element;
}

function words(row) {
  switch (row.kind) {
    case "group": case "more": return "";
    case "key":
      if (row.due) return row.due > now() ? `${row.state}, next in ${coarse(row.due - now())}` : row.state;
      return row.since ? `${row.state} for ${coarse(now() - row.since)}` : row.state;
    default:
      if (row.state === "backoff") return row.due > now() ? `back in ${coarse(row.due - now())}` : "coming back";
      return row.state;
  }
}

function update(element, row) {
  const [name, state, again, inbox, rate, up] = element.children;
  const [twist, dot, label, hint] = name.children;
  const flash = (flashing.get(row.path) ?? 0) > Date.now();
  cls(element, `row ${row.kind}${flash ? " flash" : ""}`);
  attr(element, "aria-level", row.level);
  attr(element, "aria-expanded", row.parent ? String(Boolean(row.open)) : null);
  attr(element, "aria-selected", String(row.path === at));
  attr(element, "tabindex", row.path === at ? "0" : "-1");
  attr(element, "data-path", row.path);
  attr(element, "data-state", row.state);
  text(twist, row.parent ? (row.open ? "▾" : "▸") : "");
  text(dot, row.kind === "more" ? "…" : sign(row.state));
  cls(dot, `dot s-${row.state}`);
  text(label, row.name);
  text(hint, row.hint ?? "");
  text(state, words(row));
  cls(state, row.state === "running" || row.kind === "group" ? "state muted" : `state s-${row.state}`);
  attr(element, "aria-label", [row.name, words(row), row.node?.restarts ? plural(row.node.restarts, "restart") : ""].filter(Boolean).join(", "));
  const { node } = row;
  attr(again, "title", node?.restarts ? restartsOf(node) : null);
  text(again, node?.restarts ? `↻ ${count(node.restarts)}` : "");
  text(inbox, node && node.kind.type === "actor" ? count(node.inbox) : "");
  cls(inbox, `num c-inbox${node?.inbox > 1000 ? " hot" : ""}`);
  text(rate, node?.rate ? `${node.rate < 10 ? node.rate.toFixed(1) : count(Math.round(node.rate))}/s` : "");
  text(up, node?.uptime_ms ? coarse(node.uptime_ms) : "");
}

function measure(node, at_ms) {
  const before = handled.get(node.path);
  if (before && at_ms > before.at_ms) node.rate = Math.max(0, ((node.handled - before.handled) * 1000) / (at_ms - before.at_ms));
  handled.set(node.path, { handled: node.handled, at_ms });
  const times = restarts.get(node.path);
  if (times !== undefined && node.restarts > times) flashing.set(node.path, Date.now() + 3000);
  restarts.set(node.path, node.restarts);
  for (const child of node.children) measure(child, at_ms);
}

function paint() {
  if (!seen) return;
  rows = flatten(seen);
  if (!rows.some((row) => row.path === at)) at = rows[0]?.path;
  keyed($("tree"), rows, (row) => row.path, make, update);
  details();
}

/** Counts that go on between two pictures. */
export function tick() {
  const { children } = $("tree");
  rows.forEach((row, i) => {
    if (row.due || row.since) text(children[i]?.children[1], words(row));
  });
}

export function show(overview) {
  seen = overview;
  if (overview.tree.root) measure(overview.tree.root, overview.at_ms);
  if (wanted) reveal(wanted);
  paint();
  keyed($("events"), [...overview.events].reverse().slice(0, 30), (event) => event.seq, (event) => h("li", null, h("time", null, clock(event.at_ms)), h("span", null, h("b", null, event.path.replace(/^root\//, "")), ` ${happened(event)}`)));
}

function happened(event) {
  switch (event.what) {
    case "started": return event.incarnation > 1 ? `started again (${event.incarnation})` : "started";
    case "exited": return exit(event.exit);
    case "restarting": return `is started again in ${coarse(event.in_ms)}`;
    case "escalated": return `gives up because of ${event.child}: ${exit(event.exit)}`;
    case "concluded": return `ends because ${event.child} has ended`;
    case "blocked": return `blocks its thread for ${coarse(event.for_ms)}`;
    case "degraded": return event.why ? `degraded: ${event.why}` : "works as it should again";
    default: return event.what.replaceAll("_", " ");
  }
}

/** Keys of the groups that are open. */
export async function fetchKeys() {
  for (const row of rows.filter((row) => row.kind === "group" && row.open)) {
    try {
      keysOf.set(row.path, await api(`keys?controller=${encodeURIComponent(row.controller)}&state=${row.set}&limit=50`));
    } catch { /* the next picture tries again */ }
  }
  paint();
}

/** Opens the way down to a path and selects it. */
export function reveal(path) {
  wanted = seen ? null : path;
  let above = path;
  while ((above = above.slice(0, Math.max(0, above.lastIndexOf("/"))))) open.set(above, true);
  at = path;
  if (seen) {
    paint();
    document.querySelector(`#tree [data-path="${CSS.escape(at)}"]`)?.scrollIntoView({ block: "nearest" });
  }
}

function focus(path) {
  at = path;
  paint();
  const element = document.querySelector(`#tree [data-path="${CSS.escape(path)}"]`);
  element?.focus({ preventScroll: false });
}

function enter(row) {
  if (!row) return;
  if (row.kind === "more" && row.href) location.hash = row.href;
  else if (row.kind === "more") room.set(row.grow, (room.get(row.grow) ?? WIDE) + 200);
  else if (row.kind === "key") location.hash = `#/keys/${keyPath(row.key.controller, row.key.key)}`;
  else if (row.parent) open.set(row.path, !row.open);
  paint();
  if (row.kind === "group" && !row.open) fetchKeys();
}

function pressed(event) {
  const index = rows.findIndex((row) => row.path === at);
  const row = rows[index];
  if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
  let next = null;
  switch (event.key) {
    case "ArrowDown": next = rows[index + 1]; break;
    case "ArrowUp": next = rows[index - 1]; break;
    case "Home": next = rows[0]; break;
    case "End": next = rows.at(-1); break;
    case "ArrowRight":
      if (row.parent && !row.open) enter(row);
      else if (row.open) next = rows[index + 1];
      break;
    case "ArrowLeft":
      if (row.open) enter(row);
      else next = rows.slice(0, index).reverse().find((one) => one.level < row.level);
      break;
    case "Enter": case " ": enter(row); break;
    default: {
      if (event.key.length !== 1) return;
      const letter = event.key.toLowerCase();
      next = [...rows.slice(index + 1), ...rows.slice(0, index)].find((one) => one.name.toLowerCase().startsWith(letter));
    }
  }
  event.preventDefault();
  if (next) focus(next.path);
}

/** An actor is counted by its supervisor: one that is started anew counts from nothing. */
function restartsOf(node) {
  const above = rows.find((row) => row.node && row.path === node.path.slice(0, node.path.lastIndexOf("/")))?.node;
  const since = above ? ` since ${above.id} last started, ${coarse(above.uptime_ms)} ago` : "";
  return `${count(node.restarts)}${since}${node.streak ? `; ${plural(node.streak, "failure")} in a row` : ""}`;
}

const restartsBelow = (node) => node.children.reduce((sum, child) => sum + child.restarts + restartsBelow(child), 0);

let shown = "";
function details() {
  const row = rows.find((one) => one.path === at);
  const node = row?.node;
  const body = [];
  if (node) {
    const window = node.kind.window;
    body.push(
      h("h2", null, node.id), h("p", { class: "mono muted" }, node.path),
      facts([
        ["State", words(row)],
        ["Why", node.degraded],
        ["Restarts", restartsOf(node)],
        ["Restarts below it", isSupervisor(node) ? `${count(restartsBelow(node))} of those that are there` : ""],
        ["Last exit", node.last_exit ? `${exit(node.last_exit)}, ${ago(seen.at_ms - node.last_exit_ms)}` : ""],
        ["Up", node.uptime_ms ? coarse(node.uptime_ms) : ""],
        ["Incarnation", node.incarnation],
        ["Restarts its children", isSupervisor(node) ? node.kind.strategy?.replaceAll("_", " ") : ""],
        ["Gives up", window ? `after ${plural(window.max, "failure")} within ${coarse(window.period_ms)}; ${window.restarts_in_window} now` : ""],
        ["Mailbox", isSupervisor(node) ? "" : `${count(node.inbox)} now, ${count(node.inbox_high_water)} at most`],
        ["Handled", node.handled ? count(node.handled) : ""],
        ["Thread", node.thread],
        ...Object.entries(node.facts).map(([name, value]) => [name, typeof value === "object" ? pretty(value) : String(value)]),
      ]));
    if (unlocked() && node.path !== "root") body.push(h("div", { class: "buttons" }, h("button", { onclick: () => restart(node.path) }, "Restart")));
  } else if (row?.key) {
    body.push(h("h2", null, row.key.key), facts([["Controller", row.key.controller], ["State", words(row)], ["Failures in a row", row.key.failures || ""], ["Last result", row.key.result], ["Why", row.key.why]]),
      h("div", { class: "buttons" }, h("a", { href: `#/keys/${keyPath(row.key.controller, row.key.key)}` }, "Explain")));
  } else if (row) body.push(h("h2", null, row.name), h("p", { class: "muted" }, "Enter opens it."));
  const words_ = body.map((one) => one.textContent).join("\n");
  if (words_ === shown || marked($("node"))) return;
  // a button that is about to be pressed stays where it is
  if ($("node").contains(document.activeElement) && shown.split("\n")[0] === words_.split("\n")[0] && document.activeElement.tagName === "BUTTON") return;
  shown = words_;
  $("node").replaceChildren(...body);
}

function pretty(value) {
  if (value === null) return "";
  if (Array.isArray(value)) return value.length ? value.map(pretty).join("; ") : "none";
  return typeof value === "object" ? Object.entries(value).filter(([, v]) => v !== null && v !== "").map(([k, v]) => `${k.replaceAll("_", " ")} ${pretty(v)}`).join(", ") : String(value);
}

export function relock() {
  shown = "";
  paint();
}

export function start() {
  $("tree").addEventListener("keydown", pressed);
}
