// The long table: every service and egress, of which only the lines in sight are in the page.
//
// `live.js` brings the stream of changes as events of the document. Each thing becomes one record,
// with the text that a search looks at made once; a filter is one pass over the records. The lines
// are all of one height, so what is in sight follows from how far the page is scrolled.
//
// `rows.rs` does the same for readers without JavaScript: matches and order must stay equal.

const table = document.getElementById("rows");
const body = table.tBodies[0];
const inputs = { q: document.getElementById("q"), state: document.getElementById("state"), kind: document.getElementById("kind") };
const shown = document.getElementById("shown");
const SPARE_LINES = 8;

/** Everything there is, by kind and identity. */
const records = new Map();
/** Those that the filter lets through, in order. */
let lines = [];
/** The lines that are in the page now, by key. */
let inPage = new Map();
let sort = "attention";
let isFed = false;
let rowHeight = 40;
/** The line that the keyboard is at. */
let currentKey = null;
let isScheduled = false;

const numbers = new Intl.NumberFormat("en");
const now = () => performance.now() / 1000;

/** Two largest units, as everywhere else. */
function span(seconds) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let rest = Math.max(0, Math.floor(seconds));
  let first = units.findIndex(([size]) => rest >= size);
  if (first < 0) first = units.length - 1;
  const words = [];
  for (const [size, word] of units.slice(first, first + 2)) {
    const many = Math.floor(rest / size);
    rest %= size;
    if (many > 0 || words.length === 0) words.push(`${many} ${word}`);
  }
  return words.join(" ");
}

const age = (record) => now() - record.since;

function attention(record) {
  const onItsWay = record.state !== "Created";
  if (record.parked || record.trouble) return 0;
  if (record.why || record.attempts > 0) return 1;
  if (record.addresses.quarantined > 0) return 2;
  return onItsWay ? 3 : 4;
}

function record(kind, it) {
  const known = kind === "service" && it.namespace != null && it.name != null;
  const namespace = known ? it.namespace : "-";
  const name = kind === "egress" || known ? it.name : it.uid;
  const title = kind === "egress" ? name : `${namespace}/${name}`;
  const path = kind === "egress" ? [name] : [namespace, name];
  const words = [title, kind, it.state, it.publicIp ?? "", it.why?.reason ?? "", it.why?.code ?? ""];
  return {
    key: kind === "egress" ? `egress/${name}` : `service/${it.uid}`,
    kind, title,
    href: `/${kind === "egress" ? "egresses" : "services"}/${path.map(encodeURIComponent).join("/")}`,
    state: it.state,
    since: now() - it.since.ageSeconds,
    attempts: it.attempts ?? 0,
    parked: it.parked ?? false,
    trouble: it.trouble ?? false,
    why: it.why,
    ip: it.publicIp ?? "",
    addresses: it.addresses ?? { desired: 0, programmed: 0, quarantined: 0 },
    haystack: words.join("\n").toLowerCase(),
  };
}

// What is asked for.

function readUrl() {
  const query = new URLSearchParams(location.search);
  inputs.q.value = query.get("q") ?? "";
  const state = (query.get("state") ?? "").toLowerCase();
  inputs.state.value = [...inputs.state.options].find((option) => option.value.toLowerCase() === state)?.value ?? "";
  inputs.kind.value = ["service", "egress"].includes(query.get("kind")) ? query.get("kind") : "";
  sort = ["attention", "name", "age", "attempts", "addresses"].includes(query.get("sort")) ? query.get("sort") : "attention";
}

function writeUrl() {
  const query = new URLSearchParams();
  for (const name of ["q", "state", "kind"]) {
    if (inputs[name].value.trim()) query.set(name, inputs[name].value.trim());
  }
  if (sort !== "attention") query.set("sort", sort);
  const text = query.toString();
  history.replaceState(null, "", text ? `/?${text}` : "/");
}

const PLACES = {
  attention: (it) => attention(it),
  name: () => 0,
  age: (it) => it.since,
  attempts: (it) => -it.attempts,
  addresses: (it) => -it.addresses.desired,
};

function filter() {
  if (!isFed) return;
  performance.mark("sluice-filter-begins");
  const words = inputs.q.value.toLowerCase().split(/\s+/).filter(Boolean);
  const state = inputs.state.value;
  const kind = inputs.kind.value;
  const place = PLACES[sort];
  const found = [];
  for (const it of records.values()) {
    if (state && it.state !== state) continue;
    if (kind && it.kind !== kind) continue;
    if (!words.every((word) => it.haystack.includes(word))) continue;
    it.place = place(it);
    found.push(it);
  }
  found.sort((a, b) => a.place - b.place || (a.title < b.title ? -1 : a.title > b.title ? 1 : 0));
  lines = found;
  shown.textContent = `${numbers.format(lines.length)} of ${numbers.format(records.size)}`;
  table.setAttribute("aria-rowcount", lines.length + 1);
  document.getElementById("pages")?.remove();
  emptiness();
  paint(true);
  performance.measure("sluice-filter", "sluice-filter-begins");
}

function emptiness() {
  let none = document.getElementById("none");
  if (lines.length > 0) return none?.remove();
  if (!none) {
    none = document.createElement("p");
    none.id = "none";
    none.className = "none";
    table.after(none);
  }
  none.textContent = records.size === 0 ? "No Services or egresses yet." : "No matches.";
}

// What is in sight.

function cell(tag, className, ...children) {
  const it = document.createElement(tag);
  it.className = className;
  it.append(...children);
  return it;
}

const TONES = {
  Created: "is-fine", CreationInProgress: "is-busy", UpdateInProgress: "is-busy",
  DeletionPending: "is-leaving", DeletionInProgress: "is-leaving",
};

function line(it) {
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  row.className = `need-${attention(it)}`;
  row.dataset.key = it.key;
  const link = document.createElement("a");
  link.href = it.href;
  link.textContent = it.title;
  const name = cell("th", "name", link);
  name.scope = "row";
  name.setAttribute("role", "rowheader");
  if (it.kind === "egress") name.append(cell("span", "kind", "egress"));
  const { programmed, desired } = it.addresses;
  const reason = cell("td", "reason");
  if (it.why) {
    reason.title = it.why.message;
    const word = document.createElement("b");
    word.textContent = it.why.reason;
    reason.append(word, " ", cell("span", "muted", it.why.message));
  }
  row.append(
    name,
    cell("td", "state", cell("span", `pill ${it.trouble ? "is-trouble" : TONES[it.state] ?? "is-idle"}`, it.state)),
    cell("td", "age", span(age(it))),
    cell("td", "attempts", it.attempts > 0 ? `${it.attempts}×` : ""),
    cell("td", "addresses",
      cell("span", programmed < desired ? "short" : "", numbers.format(programmed)),
      cell("span", "of", ` of ${numbers.format(desired)}`)),
    cell("td", "ip", it.ip),
    reason,
  );
  for (const other of row.cells) if (other.tagName === "TD") other.setAttribute("role", "cell");
  row.record = it;
  return row;
}

const spaces = [0, 1].map(() => {
  const row = cell("tr", "space");
  row.setAttribute("aria-hidden", "true");
  const filler = document.createElement("td");
  filler.colSpan = 7;
  row.append(filler);
  return row;
});

function space(at, count) {
  // Through the object model, which the policy allows, since it forbids styles in the page's text.
  const height = `${count * rowHeight}px`;
  spaces[at].style.height = height;
  spaces[at].firstChild.style.height = height;
  spaces[at].hidden = count === 0;
}

function paint(isNew) {
  const top = body.getBoundingClientRect().top;
  const first = Math.max(0, Math.min(lines.length, Math.floor(-top / rowHeight) - SPARE_LINES));
  const last = Math.min(lines.length, Math.ceil((innerHeight - top) / rowHeight) + SPARE_LINES);
  const wanted = lines.slice(first, Math.max(first, last));
  const before = inPage;
  inPage = new Map();
  const rows = wanted.map((it, at) => {
    const old = before.get(it.key);
    const row = old?.record === it ? old : line(it);
    if (old && old !== row && old.record.state !== it.state) row.classList.add("fresh");
    row.setAttribute("aria-rowindex", first + at + 2);
    inPage.set(it.key, row);
    return row;
  });
  space(0, first);
  space(1, lines.length - first - wanted.length);
  const children = [spaces[0], ...rows, spaces[1]];
  const isSame = children.length === body.children.length && children.every((row, at) => row === body.children[at]);
  if (isSame && !isNew) return;
  if (!isSame) {
    const focused = body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.key : null;
    body.replaceChildren(...children);
    if (focused) inPage.get(focused)?.querySelector("a").focus({ preventScroll: true });
  }
  // The browser decides how high a line really is.
  if (rows.length > 0) {
    const real = (rows.at(-1).getBoundingClientRect().bottom - rows[0].getBoundingClientRect().top) / rows.length;
    if (Math.abs(real - rowHeight) > 0.05) {
      rowHeight = real;
      paint(true);
    }
  }
}

function soon() {
  if (isScheduled || !isFed) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    paint(false);
  });
}

function ages() {
  // A page that hears nothing knows no ages.
  if (document.documentElement.dataset.stale !== undefined) return;
  for (const row of inPage.values()) {
    const text = span(age(row.record));
    const place = row.querySelector(".age");
    if (place.textContent !== text) place.textContent = text;
  }
}

// The keyboard.

function goTo(index) {
  if (lines.length === 0) return;
  const at = Math.max(0, Math.min(lines.length - 1, index));
  const header = table.tHead.getBoundingClientRect();
  const under = 52 + Math.min(40, header.height);
  const y = body.getBoundingClientRect().top + at * rowHeight;
  if (y < under) scrollBy(0, y - under - 4);
  else if (y + rowHeight > innerHeight) scrollBy(0, y + rowHeight - innerHeight + 8);
  currentKey = lines[at].key;
  paint(false);
  inPage.get(currentKey)?.querySelector("a").focus({ preventScroll: true });
}

document.addEventListener("sluice:move", ({ detail: step }) => {
  if (step === "first") return goTo(0);
  if (step === "last") return goTo(lines.length - 1);
  const at = lines.findIndex((it) => it.key === currentKey);
  goTo(at < 0 ? 0 : at + step);
});
body.addEventListener("focusin", (event) => {
  currentKey = event.target.closest("tr")?.dataset.key ?? currentKey;
});

// The stream.

document.addEventListener("sluice:changed", ({ detail: delta }) => {
  if (delta.complete) records.clear();
  for (const it of delta.services) {
    const made = record("service", it);
    records.set(made.key, made);
  }
  for (const it of delta.egresses) {
    const made = record("egress", it);
    records.set(made.key, made);
  }
  for (const it of delta.removed) records.delete(it.kind === "egress" ? `egress/${it.name}` : `service/${it.uid}`);
  if (!isFed) {
    isFed = true;
    // The button of the form is not needed any more.
    document.documentElement.dataset.fed = "";
    if (wasAsked) writeUrl();
  }
  filter();
});

// The form and the links. As long as there is no stream they are the server's, which answers with a page.

let wasAsked = false;

function asked() {
  wasAsked = true;
  if (!isFed) return;
  writeUrl();
  filter();
}

function sorted() {
  for (const link of table.querySelectorAll("a[data-sort]")) {
    const head = link.closest("th");
    if (link.dataset.sort !== sort) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", ["name", "attention"].includes(sort) ? "ascending" : "descending");
  }
}

inputs.q.addEventListener("input", asked);
inputs.state.addEventListener("change", asked);
inputs.kind.addEventListener("change", asked);
inputs.q.form.addEventListener("submit", (event) => {
  if (!isFed) return;
  event.preventDefault();
  asked();
  goTo(0);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  const isPlain = isFed && link && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!isPlain) return;
  const href = link.getAttribute("href");
  if (!href.startsWith("/?") && href !== "/#table") return;
  event.preventDefault();
  history.pushState(null, "", href.replace("#table", ""));
  readUrl();
  sorted();
  filter();
  if (!link.dataset.sort) document.getElementById("table").scrollIntoView();
});
addEventListener("popstate", () => {
  readUrl();
  sorted();
  filter();
});
addEventListener("scroll", soon, { passive: true });
addEventListener("resize", soon);
setInterval(ages, 1000);
readUrl();
sorted();
