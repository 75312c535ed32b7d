// The page: one stream of pictures, and the view that the address names.
import { $, api, attr, cls, h, keyed, lasting, setNow, span, text } from "./dom.js";
import * as actions from "./actions.js";
import * as controllers from "./controllers.js";
import * as keys from "./keys.js";
import * as tree from "./tree.js";

const VIEWS = ["tree", "controllers", "keys", "parked", "informers"];
const ICONS = { ok: "✓", notice: "i", warning: "!", critical: "✕" };
/** Between two looks at how things are while nobody sees the page. */
const GLANCE = 10000;
/** Without a picture for so long the stream is given up and opened anew. */
const SILENCE = 5000;

let view = "tree";
let seen = null;
let stream = null;
/** When there was last a picture, or the stream was last opened. */
let heard = Date.now();
/** When there was last a picture. */
let told = Date.now();
let allTroubles = false;

function connect() {
  stream?.close();
  heard = Date.now();
  stream = new EventSource("/api/v1/stream");
  stream.addEventListener("open", () => controllers.fetchHistory().catch(() => {}));
  stream.addEventListener("overview", (event) => {
    heard = Date.now();
    picture(JSON.parse(event.data), "live");
  });
  stream.addEventListener("error", broken);
}

/** The stream has ended: of a process that is gone nobody answers, which is known at once. One that only has no place, or stands still, is another matter. */
async function broken() {
  try {
    await promptly("health");
  } catch (error) {
    if (error instanceof TypeError && !document.hidden) lost();
  }
}

function picture(overview, way) {
  told = Date.now();
  seen = overview;
  setNow(seen.at_ms);
  cls($("link"), "link live");
  text($("link"), way);
  paint();
}

/** Asks, but not for long: what stands still takes connections and never answers. */
const promptly = (path) => Promise.race([api(path), new Promise((_, refuse) => setTimeout(refuse, 2000, new Error("no answer")))]);

/** Asks by itself: the stream may have no place for one more. */
async function ask() {
  try {
    const overview = await promptly("overview");
    if (Date.now() - told >= SILENCE) picture(overview, "no stream: asked every 5 s");
  } catch (error) {
    unanswered(error);
  }
}

function unanswered(error) {
  if (error.code === 503) starting();
  else if (Date.now() - told >= SILENCE) lost();
}

/** It answers, but has nothing to show yet. */
function starting() {
  cls($("link"), "link");
  text($("link"), "starting");
  verdict("notice", "The manager is starting", seen ? "what is shown is from before that" : "there is nothing to see yet");
  if (seen) $("health").classList.add("stale");
  document.title = `… ${seen?.process.name ?? "Boatswain"} is starting`;
}

/** What is shown is no longer how things are. */
function lost() {
  cls($("link"), "link lost");
  text($("link"), "connection lost, trying again");
  const last = seen ? `; what is shown is from before that: ${seen.health.line}` : "";
  verdict("critical", "The manager does not answer", `for ${span(Date.now() - told)}${last}`);
  $("health").classList.add("stale");
  document.title = `✕ ${seen?.process.name ?? "Boatswain"} does not answer`;
}

/** How things are, in one line that may lead to where it is to be seen. */
function verdict(level, line, why, to) {
  cls($("health"), `health ${level}`);
  text($("health-icon"), ICONS[level]);
  const title = $("health-line");
  if (title.dataset.line !== line) {
    title.dataset.line = line;
    title.replaceChildren(to ? h("a", { href: to }, line) : line);
  }
  text($("health-why"), why);
  cls($("brief"), `brief ${level}`);
  text($("brief"), `${ICONS[level]} ${line}`);
  brief();
}

let isHeadlineSeen = true;

/** Where the headline is scrolled away, what is wrong is said beside the tabs. */
function brief() {
  const isWell = $("health").classList.contains("ok");
  $("brief").hidden = isHeadlineSeen || isWell;
}

/** Browsers allow few connections to one place: pages that nobody sees leave them to others. */
function seenOrNot() {
  if (document.hidden) stream?.close();
  else connect();
}

async function glance() {
  if (!document.hidden) return;
  try {
    const health = await promptly("health");
    told = Date.now();
    if (!seen) return;
    seen.health = health;
    entitle();
  } catch (error) {
    unanswered(error);
  }
}

function watch() {
  if (document.hidden) return;
  const silent = Date.now() - heard;
  if (silent < SILENCE) return;
  connect();
  ask();
}

function health() {
  const { level, line, troubles } = seen.health;
  const first = troubles[0];
  const actors = (node) => 1 + node.children.reduce((sum, child) => sum + actors(child), 0);
  const calm = `${seen.controllers.length} controller${seen.controllers.length === 1 ? "" : "s"}, ${seen.informers.length} informer${seen.informers.length === 1 ? "" : "s"}, ${seen.tree.root ? actors(seen.tree.root) : 0} actors`;
  const why = first ? [first.why, lasting(first.since_ms)].filter(Boolean).join(" — ") : calm;
  verdict(level, line, why, first ? place(first) : null);
  keyed($("troubles"), troubles.slice(1, allTroubles ? troubles.length : 4), (one) => one.id, () => h("li", null, h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "what" }, h("a")), h("span", { class: "muted" }), h("span", { class: "why" })), (element, one) => {
    const [dot, what, since, why] = element.children;
    cls(element, one.level);
    text(dot, ICONS[one.level] ?? "");
    const link = what.firstChild;
    text(link, one.what);
    attr(link, "href", place(one));
    text(since, lasting(one.since_ms));
    text(why, one.why);
  });
  $("troubles-more").hidden = troubles.length <= 4;
  text($("troubles-more"), allTroubles ? "Show fewer" : `${troubles.length - 4} more`);
  entitle();
}

function entitle() {
  const { level, line } = seen.health;
  document.title = level === "ok" || level === "notice" ? `✓ ${seen.process.name}` : `${level === "critical" ? "✕" : "!"} ${line}`;
}

/** Where a trouble is to be seen. */
function place(trouble) {
  if (trouble.id.startsWith("parked:")) return "#/parked";
  if (trouble.id.startsWith("informer:") || trouble.id.startsWith("unreadable:") || trouble.id.split(":")[0] === "lease") return "#/informers";
  if (trouble.id.startsWith("errors:")) return "#/keys?state=top:failing";
  if (trouble.id.startsWith("queue:")) return "#/controllers";
  if (trouble.id.startsWith("run:")) return "#/keys?state=running";
  return trouble.path ? `#/tree/${encodeURIComponent(trouble.path)}` : "#/tree";
}

let rounds = 0;
function paint() {
  if (!seen) return;
  text($("process"), seen.process.name);
  text($("host"), seen.process.host);
  text($("logged"), seen.process.logged);
  $("about").hidden = !seen.process.logged;
  actions.allow(seen.actions, seen.process.logged);
  health();
  controllers.tell(seen);
  keys.tell(seen);
  if (view === "tree") tree.show(seen);
  if (view === "controllers") controllers.show();
  if (view === "informers") controllers.showInformers();
  if (rounds++ % 2 === 0) refresh();
}

/** What is asked for beside the stream, while it is looked at. */
function refresh() {
  const done = view === "tree" ? tree.fetchKeys() : view === "keys" ? Promise.all([keys.search(), keys.explain()]) : view === "parked" ? keys.parked() : null;
  // the stream says that the connection is lost
  done?.catch(() => {});
}

/** Part of an address; as it stands where it is no sound one. */
function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decoded);
  view = VIEWS.includes(name) ? name : "tree";
  for (const one of VIEWS) $(`view-${one}`).hidden = one !== view;
  for (const link of document.querySelectorAll(".tabs a")) attr(link, "aria-current", link.hash.startsWith(`#/${view}`) ? "page" : null);
  if (view === "tree" && rest.length) tree.reveal(rest.join("/"));
  if (view === "keys") {
    keys.route(new URLSearchParams(query ?? ""));
    keys.choose(rest.length > 1 ? rest[0] : null, rest.slice(1).join("/"));
  }
  paint();
  refresh();
}

actions.start();
actions.onLock(() => {
  tree.relock();
  paint();
  refresh();
});
$("skip").addEventListener("click", (event) => {
  // the address names a view
  event.preventDefault();
  $("main").focus();
});
$("troubles-more").addEventListener("click", () => {
  allTroubles = !allTroubles;
  health();
});
new IntersectionObserver((entries) => {
  isHeadlineSeen = entries.at(-1).isIntersecting;
  brief();
}).observe($("health-line"));
keys.start();
tree.start();
window.addEventListener("hashchange", route);
document.addEventListener("visibilitychange", seenOrNot);
setInterval(glance, GLANCE);
setInterval(() => {
  watch();
  if (view === "tree" && !document.hidden) tree.tick();
}, 250);
route();
seenOrNot();
// one that is starting has no picture for the stream
ask();
