// Keeps a page live: follows the stream of changes, brings the parts that the server has written
// anew, and listens to the keyboard. Without it every page is still whole, and stands still.

const root = document.documentElement;
const page = root.dataset.page;
const badge = document.getElementById("live");
/** The shortest time between two looks, and the longest, in milliseconds. */
const PACE = 1000;
const IDLE = 5000;
/** Without an answer for so long, a page says that it is stale. */
const STALE = 10000;

// Parts of the page that the server writes.

/** What tells a node from its neighbours: its name, or what it says apart from ages. */
function mark(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return `${node.nodeName} ${node.data}`;
  const name = node.id || node.getAttribute("aria-labelledby");
  return `${node.nodeName} ${name || node.outerHTML.replace(/(<time[^>]*>)[^<]*/g, "$1")}`;
}

/** For each of their children the one of ours that it is, or was; each of ours once. */
function pairs(ours, theirs) {
  const left = new Set(ours);
  const byMark = Map.groupBy(ours, mark);
  const found = theirs.map((node) => {
    const same = byMark.get(mark(node))?.shift();
    left.delete(same);
    return same;
  });
  return found.map((same, at) => {
    if (same || theirs[at].id) return same;
    const alike = [...left].find((node) => node.nodeName === theirs[at].nodeName && !node.id);
    left.delete(alike);
    return alike;
  });
}

/**
 * Makes our node say what theirs says, and touches only what differs: so the focus, a selection and
 * the scrolled part stay where a person has put them, and a screen reader reads what is new.
 */
function patch(ours, theirs) {
  if (ours.nodeType !== Node.ELEMENT_NODE) {
    if (ours.data !== theirs.data) ours.data = theirs.data;
    return;
  }
  for (const name of ours.getAttributeNames()) if (!theirs.hasAttribute(name)) ours.removeAttribute(name);
  for (const name of theirs.getAttributeNames()) {
    if (ours.getAttribute(name) !== theirs.getAttribute(name)) ours.setAttribute(name, theirs.getAttribute(name));
  }
  const wanted = [...theirs.childNodes];
  const kept = pairs([...ours.childNodes], wanted);
  const stays = new Set(kept);
  for (const node of [...ours.childNodes]) if (!stays.has(node)) node.remove();
  let next = ours.firstChild;
  wanted.forEach((node, at) => {
    const child = kept[at] ?? document.importNode(node, true);
    if (kept[at]) patch(child, node);
    // Whatever is in its place is not moved, since that would take the focus away.
    if (child === next) next = next.nextSibling;
    else ours.insertBefore(child, next);
  });
}

/** Brings a part of our page up to the other document. */
function swap(other, id) {
  const ours = document.getElementById(id);
  const theirs = other.getElementById(id);
  if (ours && theirs) patch(ours, theirs);
}

async function look() {
  const path = page === "front" ? "/fragments/summary" : location.pathname;
  const answer = await fetch(path, { cache: "no-cache", credentials: "same-origin", signal: AbortSignal.timeout(STALE) });
  const text = await answer.text();
  if (!answer.ok && answer.status !== 404) return;
  heard();
  const other = new DOMParser().parseFromString(text, "text/html");
  if (page === "front") for (const id of ["about", "findings", "states", "totals", "charts"]) swap(other, id);
  else if (answer.status === 404) location.reload();
  else swap(other, "detail");
}

let looked = 0;
let waiting = null;

/** Looks soon, but not too often, and not while nobody sees it. */
function lookSoon(pause) {
  if (page === "still" || document.hidden) return;
  const at = Math.max(Date.now() + pause, looked + PACE);
  if (waiting && waiting.at <= at) return;
  if (waiting) clearTimeout(waiting.timer);
  const timer = setTimeout(async () => {
    waiting = null;
    looked = Date.now();
    try {
      await look();
    } catch {
      // The stream says that the server is away; there is nothing to add.
    }
    // While an operation is under way, its steps change without a change of state.
    const isBusy = document.getElementById("detail")?.dataset.busy !== undefined;
    lookSoon(isBusy ? PACE : IDLE);
  }, at - Date.now());
  waiting = { at, timer };
}

// How old the page is.

const banner = document.getElementById("stale");
let lastHeard = Date.now();

/** The controller has answered. */
function heard() {
  lastHeard = Date.now();
  if (root.dataset.stale === undefined) return;
  delete root.dataset.stale;
  banner.hidden = true;
  banner.textContent = "";
}

/** Nothing on the page is true any more for sure: nothing is shown as fine, and ages stop. */
function noticeSilence() {
  if (document.hidden || root.dataset.stale !== undefined || Date.now() - lastHeard < STALE) return;
  root.dataset.stale = "";
  const since = new Date(lastHeard).toLocaleTimeString("en-GB");
  banner.textContent = `No answer from the controller since ${since}. This page is out of date.`;
  banner.hidden = false;
}

// The stream.

function say(is, text) {
  if (badge.dataset.is === is) return;
  badge.dataset.is = is;
  badge.textContent = text;
}

/** A browser has few connections to one server, for all its tabs; one that nobody sees gives its own back. */
let stream = null;
let lastId = "";

function follow() {
  const query = new URLSearchParams();
  if (root.dataset.of) query.set("of", root.dataset.of);
  if (lastId) query.set("after", lastId);
  stream?.close();
  stream = new EventSource(`/api/v1/events?${query}`);
  const changed = (event) => {
    heard();
    say("live", "live");
    lastId = event.lastEventId;
    const delta = JSON.parse(event.data);
    document.dispatchEvent(new CustomEvent("sluice:changed", { detail: delta }));
    lookSoon(delta.complete ? IDLE : 0);
  };
  stream.addEventListener("open", () => {
    heard();
    say("live", "live");
  });
  stream.addEventListener("snapshot", changed);
  stream.addEventListener("delta", changed);
  stream.addEventListener("goodbye", (event) => {
    badge.title = JSON.parse(event.data).message;
    say("lost", "ended");
    lookSoon(0);
  });
  stream.addEventListener("error", () => {
    say("lost", "reconnecting");
    // The browser comes back by itself, unless it was refused; then we ask again later.
    if (stream?.readyState === EventSource.CLOSED) setTimeout(() => stream && follow(), IDLE);
  });
}

function rest() {
  stream?.close();
  stream = null;
  say("resting", "paused");
}

// Light and dark.

const theme = document.getElementById("theme");
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function nameTheme() {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", isDark() ? "Use light colors" : "Use dark colors");
}

function turnTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("sluice-theme", root.dataset.theme);
  } catch {
    // Then it holds for this page only.
  }
  nameTheme();
}

theme.hidden = false;
theme.addEventListener("click", turnTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
nameTheme();

// The keyboard.

const keys = document.getElementById("keys");
const opener = document.getElementById("keys-open");
opener.hidden = false;
opener.addEventListener("click", () => keys.showModal());

const move = (step) => document.dispatchEvent(new CustomEvent("sluice:move", { detail: step }));
const inTable = () => document.activeElement?.closest?.("#rows tbody");
const search = document.getElementById("q");

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const isTyping = document.activeElement?.matches?.("input, select, textarea");
  if (isTyping) {
    if (event.key === "Escape") document.activeElement.blur();
    else if (event.key === "ArrowDown" && document.activeElement === search) move("first");
    else return;
    event.preventDefault();
    return;
  }
  const acts = {
    "/": () => (search ? (search.focus(), search.select()) : location.assign("/#table")),
    "?": () => keys.showModal(),
    t: turnTheme,
    h: () => page !== "front" && location.assign("/"),
    j: () => move(1),
    k: () => move(-1),
    g: () => move("first"),
    G: () => move("last"),
  };
  // The arrows scroll the page, except inside the table.
  if (inTable()) Object.assign(acts, { ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => move("first"), End: () => move("last") });
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

if (page !== "still") {
  follow();
  addEventListener("pagehide", rest);
  addEventListener("pageshow", (event) => event.persisted && follow());
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return rest();
    // What a hidden page has missed is asked for first.
    lastHeard = Math.max(lastHeard, Date.now() - STALE / 2);
    follow();
    lookSoon(0);
  });
  lookSoon(IDLE);
  setInterval(noticeSilence, PACE);
}
