// What people ask for: unlocked by a token that is kept in this page's memory only, confirmed one by one.
import { $, h, text } from "./dom.js";

let token = null;
let allowed = false;
let logged = "";
const listeners = [];

export const unlocked = () => token !== null;
export const onLock = (listener) => listeners.push(listener);

export function allow(actions, filter = logged) {
  allowed = actions;
  logged = filter ?? "";
  $("lock").hidden = !allowed;
  $("loglevel").hidden = !unlocked();
  $("unpark-all").hidden = !unlocked();
  text($("lock"), unlocked() ? "Lock actions" : "Unlock actions");
}

function changed() {
  allow(allowed);
  for (const listener of listeners) listener();
}

export function toast(words, bad = false) {
  const element = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : null }, words);
  $("toasts").append(element);
  setTimeout(() => element.remove(), bad ? 9000 : 5000);
}

function post(action, body, bearer) {
  return fetch(`/api/v1/actions/${action}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${bearer}` },
    body: JSON.stringify(body),
  });
}

async function complaint(answer) {
  try { return (await answer.json()).error; } catch { return answer.statusText; }
}

/** Asks in a dialog; `check` may refuse by returning words, which leaves it open. Gives what was typed, or null. */
export function ask({ title, words, label, secret, value, yes, check }) {
  const dialog = $("ask");
  const input = $("ask-input");
  text($("ask-title"), title);
  text($("ask-text"), words);
  text($("ask-error"), "");
  text($("ask-yes"), yes ?? "Yes");
  $("ask-label").hidden = !label;
  text($("ask-label").firstElementChild, label ?? "");
  input.type = secret ? "password" : "text";
  input.value = value ?? "";
  dialog.returnValue = "no";
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    let busy = false;
    const submit = async (event) => {
      event.preventDefault();
      // once is enough, however often Enter is pressed
      if (busy) return;
      busy = true;
      text($("ask-error"), "");
      const refusal = await check?.(input.value).catch((error) => `It is not known whether that was done: ${error.message}`);
      busy = false;
      if (closed) return refusal && toast(refusal, true);
      if (refusal) return text($("ask-error"), refusal);
      dialog.close("yes");
    };
    form.addEventListener("submit", submit);
    let closed = false;
    dialog.addEventListener("close", () => {
      closed = true;
      form.removeEventListener("submit", submit);
      const typed = input.value;
      input.value = "";
      resolve(dialog.returnValue === "yes" ? typed : null);
    }, { once: true });
    dialog.showModal();
  });
}

/** A token that is refused will not be taken later: it was changed. */
function refused(why) {
  token = null;
  $("ask").close("no");
  toast(`Not done: ${why}. Actions are locked; unlock them with the token that is valid now.`, true);
  changed();
}

async function unlock() {
  if (unlocked()) {
    token = null;
    return changed();
  }
  const given = await ask({
    title: "Unlock actions", words: "The token is in the file that --dashboard-token-file names. This page keeps it in memory until it is closed.",
    label: "Token", secret: true, yes: "Unlock",
    check: async (typed) => {
      const answer = await post("verify", {}, typed);
      return answer.ok ? null : complaint(answer);
    },
  });
  if (given !== null) {
    token = given;
    changed();
  }
}

/** Does something after a confirmation. */
export async function act(action, body, { title, words, yes, label, field, value }) {
  // the token may have been refused since the button was made
  if (!unlocked()) return;
  await ask({
    title, words, yes, label, value,
    check: async (typed) => {
      const answer = await post(action, field ? { ...body, [field]: typed } : body, token);
      if (answer.status === 403) {
        refused(await complaint(answer));
        return null;
      }
      if (!answer.ok) return complaint(answer);
      toast((await answer.json()).done);
      return null;
    },
  });
}

export const requeue = (controller, key) => act("requeue", { controller, key }, { title: "Run now?", words: `${key} of ${controller} runs as soon as a worker is free, whatever it waits for.`, yes: "Run now" });
export const unpark = (controller, key) => act("unpark", { controller, key }, { title: "Unpark?", words: `${key} of ${controller} runs again, as one that has never failed.`, yes: "Unpark" });
export const restart = (path) => act("restart", { path }, { title: "Restart?", words: `${path} is stopped in good order and started again. Siblings that depend on it are restarted with it.`, yes: "Restart" });
export const pause = (controller) => act("pause", { controller }, { title: "Pause?", words: `No run of ${controller} begins in this process until it is resumed. What runs goes on; keys are collected. Other replicas are not paused.`, yes: "Pause", label: "Why, for whoever wonders", field: "reason" });
export const resume = (controller) => act("resume", { controller }, { title: "Resume?", words: `Runs of ${controller} begin again.`, yes: "Resume" });

export function start() {
  // no button of the form: Enter would press the first of them
  $("ask-no").addEventListener("click", () => $("ask").close("no"));
  $("lock").addEventListener("click", unlock);
  $("loglevel").addEventListener("click", () => act("log-level", {}, { title: "What is logged", words: "A level, or directives as in RUST_LOG, until the process ends.", yes: "Set", label: "Filter", field: "filter", value: logged }));
}
