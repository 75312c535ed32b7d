// Controllers with their last minutes, and the informers.
import { $, api, attr, bytes, coarse, count, facts, h, keyed, lasting, marked, span, text } from "./dom.js";
import { pause, resume, unlocked } from "./actions.js";
import { chart } from "./chart.js";

const SECONDS = 300;
const history = new Map();
let seen = null;

export async function fetchHistory() {
  const { history: past } = await api("controllers");
  history.clear();
  for (const [name, points] of Object.entries(past)) history.set(name, points);
}

export function tell(overview) {
  seen = overview;
  for (const { name, point } of overview.controllers) {
    const points = history.get(name) ?? [];
    if (!points.length || points.at(-1).at_ms < point.at_ms) points.push(point);
    if (points.length > SECONDS) points.splice(0, points.length - SECONDS);
    history.set(name, points);
  }
}

const lanes = (of) => [
  { name: "user", of: (point) => point[of].user }, { name: "normal", of: (point) => point[of].normal }, { name: "low", of: (point) => point[of].low },
];

function make(controller) {
  const charts = [
    chart("Ready keys", lanes("queued"), (n) => count(Math.round(n ?? 0))),
    chart("Oldest ready key", lanes("oldest_ms"), (ms) => span(ms ?? 0)),
    chart("Runs per second", [{ name: "all", of: (p) => p.rate }, { name: "in error", colour: "d", of: (p) => p.errors }], (n) => (n ?? 0).toFixed(n >= 100 || !n ? 0 : 1)),
    chart("Duration", [{ name: "p50", of: (p) => p.p50_ms }, { name: "p90", of: (p) => p.p90_ms }, { name: "p99", of: (p) => p.p99_ms }], (ms) => (ms === null || ms === undefined ? "–" : span(ms))),
  ];
  const numbers = ["ready", "running", "waiting", "held", "parked", "a second", "succeed"].map((name) => h("div", null, h("dt", null, name), h("dd")));
  const head = h("div", { class: "controller-head" }, h("h2", null, controller.name), h("span", { class: "muted" }, controller.resource || controller.kind), h("span", { class: "pill" }),
    h("div", { class: "buttons" }, h("button", { hidden: true })));
  const good = h("i", { class: "good" }), bad = h("i", { class: "bad" });
  const element = h("article", { class: "card controller" }, head, h("dl", { class: "numbers" }, numbers), h("div", { class: "results", role: "img" }, good, bad), h("div", { class: "charts" }, charts), h("div", { class: "more" }));
  head.querySelector("button").addEventListener("click", () => (element.paused ? resume : pause)(controller.name));
  element.parts = { charts, numbers, good, bad, pill: head.children[2], button: head.querySelector("button"), results: element.children[2], more: element.lastChild };
  return element;
}

function state(controller) {
  if (controller.shut) return [controller.shut.since_ms ? `${controller.shut.why}, ${lasting(controller.shut.since_ms)}` : controller.shut.why, controller.shut.state === "not_synced" ? "pill s-waiting" : "pill s-suspended"];
  if (controller.degraded) return ["panics on many keys", "pill s-degraded"];
  return ["works", "pill s-running"];
}

function update(element, controller) {
  const { charts, numbers, good, bad, pill, button, results, more } = element.parts;
  const { queued, point } = controller;
  const ended = Object.values(controller.results).reduce((sum, n) => sum + n, 0);
  const errors = controller.errors.reduce((sum, result) => sum + (controller.results[result] ?? 0), 0);
  const share = ended ? (ended - errors) / ended : 1;
  const values = [
    count(queued.user + queued.normal + queued.low), `${count(controller.running)} of ${controller.concurrency}`, count(controller.waiting), count(controller.held), count(controller.parked),
    point.rate.toFixed(point.rate < 10 ? 1 : 0), ended ? `${(share * 100).toFixed(share > 0.995 && share < 1 ? 2 : 1).replace(/\.0$/, "")} %` : "–",
  ];
  values.forEach((value, i) => text(numbers[i].lastChild, value));
  good.style.width = `${ended ? share * 100 : 0}%`;
  bad.style.width = `${ended ? (1 - share) * 100 : 0}%`;
  const told = Object.entries(controller.results).filter(([, n]) => n).map(([result, n]) => `${result.replaceAll("_", " ")} ${count(n)}`).join(", ");
  attr(results, "aria-label", `Runs so far: ${told || "none"}`);
  attr(results, "title", told);
  const [words, cls] = state(controller);
  text(pill, words);
  pill.className = cls;
  element.paused = controller.paused;
  button.hidden = !unlocked();
  text(button, element.paused ? "Resume" : "Pause");
  const points = history.get(controller.name) ?? [];
  for (const one of charts) one.draw(points);
  const limiter = seen.tree.root?.children.find((node) => node.id === "controllers")?.children.find((node) => node.id === controller.name)?.children.find((node) => node.id === "limiter");
  const lines = [
    ["Results", told],
    ["Longest run", controller.running ? coarse(controller.longest_run_ms) : ""],
    ["Limiter", limiter ? Object.entries(limiter.facts).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value).replace(/[{}"]/g, "").replaceAll(",", ", ").replaceAll(":", " ").replaceAll("_", " ") : value}`).join(", ") : ""],
  ];
  const shown = lines.map((line) => line[1]).join("\n");
  if (more.dataset.shown !== shown) {
    more.dataset.shown = shown;
    more.replaceChildren(facts(lines));
  }
}

export function show() {
  if (!seen) return;
  keyed($("view-controllers"), seen.controllers, (one) => one.name, make, update);
}

/** Informers and leases. */
export function showInformers() {
  const view = $("view-informers");
  if (!seen || marked(view)) return;
  const head = ["Informer", "State", "Objects", "Bytes", "Last event", "Last contact", "Relists", "Version"];
  // on a phone each cell says what its column is
  const cell = (column, props, ...words) => h("td", { "data-head": head[column], ...props }, words);
  const row = (informer) => h("tr", null,
    h("td", null, h("b", null, informer.name), informer.degraded ? h("div", { class: "bad" }, informer.degraded) : null, informer.unreadable_count ? h("div", { class: "bad" }, `${count(informer.unreadable_count)} cannot be read: ${Object.entries(informer.unreadable).map(([key, why]) => `${key} (${why})`).join("; ")}`) : null),
    cell(1, null, h("span", { class: `pill ${informer.degraded ? "s-degraded" : informer.fresh ? "s-running" : "s-waiting"}` }, informer.synced ? (informer.fresh ? informer.state : `${informer.state}, behind`) : `${informer.state}, not synced`)),
    cell(2, { class: "num" }, count(informer.objects)),
    cell(3, { class: "num" }, bytes(informer.bytes), h("div", { class: "muted" }, ` of ${bytes(informer.json_bytes)}`)),
    cell(4, null, informer.last_event_ms === null ? "never" : `${coarse(informer.last_event_ms)} ago`),
    cell(5, null, informer.last_contact_ms === null ? "never" : `${coarse(informer.last_contact_ms)} ago`),
    cell(6, null, Object.entries(informer.relists).map(([reason, n]) => `${reason.replaceAll("_", " ")} ${count(n)}`).join(", ")),
    cell(7, { class: "mono" }, informer.low_water ?? ""));
  const leadership = (lease) => h("div", { class: "card controller" }, h("h2", null, lease.controller ? `Leadership of ${lease.controller}` : "Leadership"), facts([
    ["Here", lease.leads ? "this process leads" : "this process stands by"], ["Lease", lease.name], ["We are", lease.identity], ["Holder", lease.holder ?? "nobody, or not seen yet"],
    ["Changed hands", count(lease.transitions)], ["Last renewal took", lease.renewal_ms === null ? "" : span(lease.renewal_ms)], ["Trouble", lease.error],
  ]));
  const none = () => h("div", { class: "card controller" }, h("h2", null, "Leadership"), h("p", { class: "muted" }, "No lease: every process works for itself (--leader-elect changes that)."));
  view.replaceChildren(
    h("div", { class: "card scroll" }, h("h2", null, "Informers"), h("table", null, h("thead", null, h("tr", null, head.map((name, i) => h("th", { scope: "col", class: i === 2 || i === 3 ? "num" : null }, name)))), h("tbody", null, seen.informers.map(row)))),
    ...(seen.leases.length ? seen.leases.map(leadership) : [none()]));
}
