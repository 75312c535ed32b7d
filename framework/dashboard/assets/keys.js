// Keys: search, what stands out, the explanation of one, and the parked list.
import { $, ago, api, attr, clock, coarse, count, facts, h, keyPath, keyed, marked, now, plural, sign, span, text } from "./dom.js";
import { act, requeue, unlocked, unpark } from "./actions.js";

const CHIPS = [["", "Busy"], ["running", "Running"], ["queued", "Ready"], ["waiting", "Waiting"], ["held", "Held"], ["parked", "Parked"], ["undecodable", "Undecodable"], ["top:failing", "Failing"], ["top:slowest", "Slowest"]];
/** Results of runs that are no failures. */
const GOOD = ["success", "requeue_after", "retry"];
let state = "";
let chosen = null;
let asked = 0;
let controllers = "";

const due = (key) => (key.next_ms && key.next_ms > now() ? `next in ${coarse(key.next_ms - now())}` : key.since_ms ? `for ${coarse(now() - key.since_ms)}` : "");

function item(key) {
  return h("a", { class: "item", href: `#/keys/${keyPath(key.controller, key.key)}` }, h("span", { class: "key" }), h("span", { class: "end" }, h("span"), h("span", { class: "muted" })), h("span", { class: "why" }));
}

function fill(element, key) {
  const [name, end, why] = element.children;
  text(name, key.key);
  text(end.firstChild, `${sign(key.state)} ${key.state}${key.failures ? `, failed ${count(key.failures)}×` : ""}`);
  end.firstChild.className = `s-${key.state}`;
  text(end.lastChild, state === "top:slowest" && key.took_ms !== null ? `took ${span(key.took_ms)}` : due(key));
  text(why, key.why ?? "");
  why.hidden = !key.why;
  attr(element, "aria-current", chosen && chosen.controller === key.controller && chosen.key === key.key ? "true" : null);
}

const name = (key) => `${key.controller} ${key.key}`;

/** Asks for what is searched; of several answers the last one counts. */
export async function search() {
  const mine = ++asked;
  const query = new URLSearchParams({ q: $("q").value.trim(), controller: $("of").value, limit: "100" });
  if (state.startsWith("top:")) {
    query.set("top", state.slice(4));
    query.delete("q");
  } else query.set("state", state);
  let found;
  try {
    found = await api(`keys?${query}`);
  } catch (error) {
    found = { keys: [], error: error.message };
  }
  if (mine !== asked) return;
  const list = $("keys");
  if (!found.keys.length) {
    list.replaceChildren(h("p", { class: "empty" }, found.error ?? (query.get("q") ? "No key is called so." : "No key is doing that: all are idle, until something changes.")));
    return;
  }
  list.querySelector(":scope > .empty")?.remove();
  keyed(list, found.keys, name, item, fill);
  if (found.more) list.append(h("p", { class: "empty", "data-key": "…" }, "There are more: search for a part of the name."));
}

export function choose(controller, key) {
  chosen = controller ? { controller, key } : null;
  text($("explain"), "");
  shown = "";
  explain().then(() => {
    // on narrow screens it is below the list
    if (chosen && matchMedia("(max-width:1000px)").matches) $("explain").scrollIntoView({ block: "nearest" });
  });
  for (const element of $("keys").children) attr(element, "aria-current", chosen && element.dataset.key === name(chosen) ? "true" : null);
}

let shown = "";

/** Tells all about the chosen key. */
export async function explain() {
  const panel = $("explain");
  if (!chosen) {
    panel.replaceChildren(h("h2", null, "Why does it not run?"), h("p", { class: "muted" }, "Choose a key: here it says what it is doing, why it last ran, what it wrote, and when it runs next."));
    return;
  }
  const mine = chosen;
  let key;
  try {
    key = await api(`keys/${keyPath(mine.controller, mine.key)}`);
  } catch (error) {
    if (mine === chosen) panel.replaceChildren(h("h2", null, mine.key), h("p", { class: "bad" }, error.message));
    return;
  }
  if (mine !== chosen) return;
  const same = JSON.stringify([key.state, key.why, key.runs[0]?.began_ms, key.next_ms, unlocked()]);
  if (same === shown || marked(panel)) {
    const times = panel.querySelector(".when");
    if (times) text(times, due(key));
    return;
  }
  shown = same;
  panel.replaceChildren(...[
    h("h2", { class: "key" }, key.key), h("p", { class: "muted" }, key.controller),
    h("p", null, h("span", { class: `pill s-${key.state}` }, `${sign(key.state)} ${key.state}`), " ", h("span", { class: "when muted" }, due(key))),
    h("p", { class: "key-why" }, key.text.split("\n")[0].replace(`${key.key} of ${key.controller}: `, "")),
    facts([
      ["Decided", key.runs[0]?.decided],
      ["No run begins", key.shut], ["To run because", key.pending === "none" ? "" : key.pending], ["Failed in a row", key.failures || ""],
      ["Next run", key.next_ms ? `${clock(key.next_ms)} at the earliest` : ""], ["Set aside", key.quarantined],
    ]),
    unlocked() ? h("div", { class: "buttons" }, h("button", { onclick: () => requeue(key.controller, key.key) }, "Run now"), key.state === "parked" ? h("button", { class: "primary", onclick: () => unpark(key.controller, key.key) }, "Unpark") : null) : null,
    h("h3", null, key.runs.length ? "Last runs" : "No run of it is remembered"),
    h("ol", { class: "runs" }, key.runs.map((run) => h("li", { class: GOOD.includes(run.result) ? "good" : "bad" },
      h("div", null, h("b", null, run.result === "requeue_after" ? "asks to run again" : run.result.replaceAll("_", " ")), `${run.result === "requeue_after" ? ", took" : " after"} ${span(run.took_ms)}, ${ago(run.began_ms)}`, h("span", { class: "muted" }, ` · ${clock(run.began_ms)}`)),
      run.decided ? h("div", { class: "decided" }, h("span", { class: "muted" }, "decided: "), run.decided) : null,
      run.text ? h("div", { class: GOOD.includes(run.result) ? "muted" : "bad" }, run.text) : null,
      h("div", { class: "muted" }, `because: ${run.causes}${run.trigger ? `, by ${run.trigger}` : ""}${run.seen ? `; saw version ${run.seen}` : "; saw no object"}${run.attempt ? `; ${plural(run.attempt, "failure")} before` : ""}`),
      run.written ? h("div", null, `wrote ${run.written === 1 ? "once" : `${run.written} times`}${run.writes.length ? ": " : ""}`, run.writes.map((write) => h("div", { class: "mono" }, write))) : h("div", { class: "muted" }, "wrote nothing"),
      run.id ? h("div", { class: "mono muted" }, run.id) : null))),
  ].filter(Boolean));
}

let total = 0;

/** The parked keys, filtered. */
export async function parked() {
  const q = $("parked-q").value.trim();
  const found = await api(`parked?${new URLSearchParams({ q, limit: "200" })}`);
  total = found.total;
  text($("parked-note"), found.total ? `${plural(found.total, "key")}${found.total > found.parked.length ? `, of which ${found.parked.length} are shown` : ""}. They failed by their objects' fault, or were given up, and wait until something changes.` : "");
  text($("unpark-all"), q ? `Unpark these ${count(total)}` : "Unpark all");
  $("unpark-all").disabled = !total;
  const list = $("parked");
  if (!found.parked.length) return list.replaceChildren(h("p", { class: "empty" }, q ? "No parked key is called so." : "Nothing is parked."));
  list.querySelector(":scope > .empty")?.remove();
  keyed(list, found.parked, (key) => `${name(key)} ${unlocked()}`, (key) => h("div", { class: "item" },
    h("a", { class: "key", href: `#/keys/${keyPath(key.controller, key.key)}` }, key.key), h("span", { class: "end" }, h("span", { class: "muted" }), unlocked() ? h("button", { onclick: () => unpark(key.controller, key.key) }, "Unpark") : null), h("span", { class: "why" })), (element, key) => {
    text(element.children[1].firstChild, `${key.controller}, failed ${count(key.failures)}×, parked ${ago(key.since_ms)}`);
    text(element.children[2], key.reason);
  });
}

async function unparkAll() {
  const q = $("parked-q").value.trim();
  const names = [...new Set((await api(`parked?${new URLSearchParams({ q, limit: "1000" })}`)).parked.map((key) => key.controller))];
  for (const controller of names) {
    await act("unpark", q ? { controller, q } : { controller }, { title: "Unpark?", words: `${q ? `Every parked key of ${controller} whose name holds “${q}”` : `Every parked key of ${controller}`} runs again, as one that has never failed.`, yes: "Unpark" });
  }
}

/** Takes what the address says. */
export function route(query) {
  state = query.get("state") ?? state;
  if (query.has("controller")) $("of").dataset.wanted = query.get("controller");
  if (query.has("q")) $("q").value = query.get("q");
  chips();
}

function chips() {
  keyed($("states"), CHIPS, ([value]) => value, ([value, words]) => h("button", { type: "button", onclick: () => { state = value; chips(); search(); } }, words), (element, [value]) => attr(element, "aria-pressed", String(value === state)));
}

export function tell(overview) {
  const names = overview.controllers.map((one) => one.name);
  const select = $("of");
  if (controllers !== names.join("\n")) {
    controllers = names.join("\n");
    const value = select.dataset.wanted ?? select.value;
    select.replaceChildren(h("option", { value: "" }, "all controllers"), ...names.map((one) => h("option", { value: one }, one)));
    select.value = names.includes(value) ? value : "";
  } else if (select.dataset.wanted !== undefined) select.value = select.dataset.wanted;
  delete select.dataset.wanted;
  const n = overview.controllers.reduce((sum, one) => sum + one.parked, 0);
  $("parked-count").hidden = !n;
  text($("parked-count"), count(n));
}

export function start() {
  let timer;
  const soon = (then) => () => {
    clearTimeout(timer);
    timer = setTimeout(then, 150);
  };
  chips();
  $("q").addEventListener("input", soon(search));
  $("parked-q").addEventListener("input", soon(parked));
  $("of").addEventListener("change", search);
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  $("unpark-all").addEventListener("click", unparkAll);
}
