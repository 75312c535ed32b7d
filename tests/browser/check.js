// What is wrong with the page that is shown, for whoever sees little, hears it read, or has no mouse; one line each.
const wrong = [];
const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
const told = (e) => `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ""}${e.className ? `.${e.className}` : ""} "${(e.textContent ?? "").trim().slice(0, 30)}"`;

// names
const named = (e) => {
  const by = e.getAttribute("aria-labelledby");
  const words = e.getAttribute("aria-label") ?? (by ? document.getElementById(by)?.textContent : null) ?? [...(e.labels ?? [])].map((label) => label.textContent).join(" ");
  return (words || (e.matches("input,select,dialog,[role=tree],section,nav") ? "" : e.textContent)).trim();
};
for (const e of document.querySelectorAll("a[href],button,input,select,dialog[open],nav,section[aria-label],[role=treeitem],[role=tree],[role=img],[role=group]")) {
  if (shown(e) && !named(e)) wrong.push(`has no name: ${told(e)}`);
}
for (const e of document.querySelectorAll("img:not([alt])")) wrong.push(`has no words instead: ${told(e)}`);
for (const e of document.querySelectorAll("[aria-hidden=true] a,[aria-hidden=true] button,[aria-hidden=true] [tabindex='0']")) wrong.push(`is hidden but can be reached: ${told(e)}`);

// structure
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of ids.filter((id, i) => ids.indexOf(id) < i)) wrong.push(`twice: #${id}`);
for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) wrong.push(`jumps the queue: ${told(e)}`);
if ([...document.querySelectorAll("h1")].filter(shown).length !== 1) wrong.push("there is not one first heading");
let before = 0;
for (const e of [...document.querySelectorAll("h1,h2,h3,h4")].filter(shown)) {
  const level = Number(e.tagName[1]);
  if (level > before + 1) wrong.push(`skips a level of headings: ${told(e)}`);
  before = level;
}
const tree = document.querySelector("[role=tree]");
if (tree && shown(tree)) {
  const items = [...tree.children];
  if (items.some((e) => e.getAttribute("role") !== "treeitem" || !e.getAttribute("aria-level"))) wrong.push("something in the tree is no item of it");
  if (items.filter((e) => e.tabIndex === 0).length !== 1) wrong.push("the tree has not one way in");
}

// contrast
const parsed = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
  return { r, g, b, a };
};
const over = (top, below) => ({ r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1 });
const ground = (e) => {
  if (!e) return { r: 255, g: 255, b: 255, a: 1 };
  const own = parsed(getComputedStyle(e).backgroundColor);
  return own.a === 1 ? own : over(own, ground(e.parentElement));
};
const light = ({ r, g, b }) => {
  const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const contrast = (one, other) => {
  const [least, most] = [light(one), light(other)].sort((a, b) => a - b);
  return (most + 0.05) / (least + 0.05);
};
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || seen.has(e) || !shown(e) || e.closest(":disabled,option,.skip:not(:focus)")) continue;
  seen.add(e);
  const style = getComputedStyle(e);
  const below = ground(e);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && Number(style.fontWeight) >= 600);
  const least = large || e.closest("[aria-hidden=true]") ? 3 : 4.5;
  const found = contrast(over(parsed(style.color), below), below);
  if (found < least) wrong.push(`contrast ${found.toFixed(2)}: ${told(e)}`);
}
for (const e of document.querySelectorAll("button,input,select")) {
  if (!shown(e)) continue;
  const border = parsed(getComputedStyle(e).borderTopColor);
  const found = contrast(over(border, ground(e.parentElement)), ground(e.parentElement));
  if (found < 3) wrong.push(`edge ${found.toFixed(2)}: ${told(e)}`);
}
return wrong;
