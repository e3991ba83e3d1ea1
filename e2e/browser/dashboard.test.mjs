// What a person can do with the dashboard. Every test has a page of its own; they share one server.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { browse, isLive, names, serious, serve, shoot } from "./stage.mjs";

let server;
let browser;
before(async () => {
  server = await serve();
  browser = await browse();
});
afterEach(() => browser?.closePages());
after(async () => {
  await browser?.close();
  await server?.stop();
});

const at = (path) => new URL(path, server.url).href;
const shows = (page, count) => page.locator("#shown").filter({ hasText: new RegExp(`^${count} of `) }).waitFor();
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const isDark = (colour) => colour.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 60);

test("the page opens on findings, the worst first, each with the next step and a link", async () => {
  const page = await browser.open(server.url);
  await isLive(page);
  await page.getByText("2 Services waiting for Azure quota").waitFor();
  const findings = await page.locator("#findings li").allInnerTexts();
  assert.match(findings[0], /^trouble/);
  assert.match(findings.find((text) => text.includes("quota")), /shop\/checkout, shop\/search\.\s+Request a higher limit/);
  assert.match(findings.at(-1), /of \d+ Services and egresses are served as desired\./);
  const first = await page.locator("main h2").first().innerText();
  assert.equal(first, "Findings");
  await shoot(page, "front-light");
  await page.locator("#findings").getByText("shop/checkout").click();
  await page.getByRole("heading", { level: 1, name: "shop/checkout" }).waitFor();
});

test("a change in the cluster is on the page without loading it again", async () => {
  // A server where nothing else happens, since things are counted.
  const calm = await serve("--calm", "--services", "5", "--egresses", "1");
  const page = await browser.open(calm.url);
  await isLive(page);
  await page.evaluate(() => { globalThis.sameDocument = true; });
  await page.locator("#q").fill("shop/fresh");
  await page.getByText("No matches.").waitFor();
  const counted = async () => Number((await page.locator('#states a[data-state="Created"] .count').textContent()).replace(",", ""));
  const before = await counted();
  calm.tell("apply shop/fresh 3");
  const row = page.locator("#rows tbody tr", { hasText: "shop/fresh" });
  await row.getByText("Created").waitFor();
  await row.getByText("3 of 3").waitFor();
  const becomes = (count) => page.waitForFunction(
    (count) => Number(document.querySelector('#states a[data-state="Created"] .count').textContent) === count, count);
  await becomes(before + 1);
  calm.tell("delete shop/fresh");
  await page.getByText("No matches.").waitFor();
  await becomes(before);
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true);
  await page.context().close();
});

test("the page of a service has its plan, its timeline, its events and its calls, and stays live", async () => {
  const page = await browser.open(at("/services/shop/checkout"));
  await isLive(page);
  for (const title of ["What to do", "Waiting for", "Plan", "Timeline", "Events", "Calls to Azure", "Addresses", "Facts"]) {
    await page.getByRole("heading", { level: 2, name: title, exact: true }).waitFor();
  }
  assert.match(await page.locator(".steps .failed").innerText(), /public-ip[\s\S]*PublicIPCountLimitReached/);
  assert.match(await page.locator(".list").last().innerText(), /PUT publicIPAddresses\/[\s\S]*400 PublicIPCountLimitReached/);
  await shoot(page, "detail-light", { fullPage: true });
  const egress = await browser.open(at("/egresses/blue"));
  await egress.locator("#summary", { hasText: /^In sync\.$/ }).waitFor();

  server.tell("apply mail/later 2");
  const fresh = await browser.open(at("/"));
  await isLive(fresh);
  await fresh.locator("#q").fill("mail/later");
  await fresh.locator("#rows").getByText("Created").waitFor();
  await fresh.locator("#rows").getByText("mail/later").click();
  await fresh.locator(".hero").getByText("Created").waitFor();
  server.tell("apply mail/later 5");
  await fresh.locator(".figures").getByText("5", { exact: true }).first().waitFor();
  server.tell("delete mail/later");
  await fresh.getByText("service/mail/later not found, or not managed by Sluice").waitFor();
});

test("a refresh leaves focus and selection alone, and reads aloud only what is new", async () => {
  const calm = await serve("--calm", "--services", "5", "--egresses", "1");
  const page = await browser.open(new URL("/services/shop/web", calm.url).href);
  await isLive(page);
  const age = page.locator("dl.figures div", { hasText: "in this state" }).locator("dd");
  const first = await age.innerText();
  await page.evaluate(() => {
    const region = document.querySelector('.scroll[aria-labelledby="calls-title"]');
    region.focus();
    getSelection().selectAllChildren(document.getElementById("title"));
    globalThis.told = 0;
    new MutationObserver(() => { globalThis.told += 1; }).observe(document.querySelector(".hero"), { subtree: true, childList: true, characterData: true });
    globalThis.before = { region, summary: document.getElementById("summary") };
  });
  const kept = () => page.evaluate(() => ({
    focus: document.activeElement === globalThis.before.region && document.activeElement.isConnected,
    selection: getSelection().toString().trim(),
    liveRegion: document.getElementById("summary") === globalThis.before.summary,
  }));
  // Ages go on, so the page was written anew; nothing that is read aloud has changed.
  await page.waitForFunction((first) => [...document.querySelectorAll("dl.figures div")]
    .some((line) => line.textContent.startsWith("in this state") && line.querySelector("dd").textContent !== first), first);
  assert.deepEqual(await kept(), { focus: true, selection: "shop/web", liveRegion: true });
  assert.equal(await page.evaluate(() => globalThis.told), 0);
  // Something happens, and a section grows.
  const calls = page.locator('[aria-labelledby="calls-title"] tbody tr');
  const many = await calls.count();
  calm.tell("apply shop/web 9");
  await page.locator(".figures").getByText("9", { exact: true }).first().waitFor();
  await page.waitForFunction((many) => document.querySelectorAll('.scroll[aria-labelledby="calls-title"] tbody tr').length > many, many);
  assert.deepEqual(await kept(), { focus: true, selection: "shop/web", liveRegion: true });
  await page.context().close();
});

test("search and filters are in the URL, and a finding leads to its rows", async () => {
  const page = await browser.open(server.url);
  await isLive(page);
  await page.locator("#q").fill("quota shop");
  await shows(page, 2);
  assert.deepEqual(await names(page), ["shop/checkout", "shop/search"]);
  assert.equal(new URL(page.url()).search, "?q=quota+shop");
  await page.locator("#q").fill("");
  await page.locator("#kind").selectOption("egress");
  await shows(page, 6);
  await page.locator("#state").selectOption("NotStarted");
  await page.getByText("No matches.").waitFor();
  assert.equal(new URL(page.url()).search, "?state=NotStarted&kind=egress");
  const again = await browser.open(page.url());
  await again.getByText("No matches.").waitFor();
  await page.getByText("Show all 2").click();
  await page.waitForFunction(() => document.querySelectorAll("#rows tbody th.name").length === 2);
  assert.equal(await page.locator("#q").inputValue(), "QuotaExceeded");
  await page.goBack();
  await page.getByText("No matches.").waitFor();
});

test("server and browser agree on what matches and what comes first", async () => {
  // A server where nothing else happens, since one page is older than the other.
  const calm = await serve("--calm");
  const open = (path, options) => browser.open(new URL(path, calm.url).href, options);
  for (const path of ["/", "/?sort=addresses&kind=egress", "/?state=Created&q=shop&sort=name", "/?q=198.18.0.2"]) {
    const [still, live] = await Promise.all([open(path, { javaScriptEnabled: false }), open(path)]);
    await isLive(live);
    await live.locator("#rows[aria-rowcount]").waitFor();
    const written = await names(still);
    const count = await still.locator("#shown").innerText();
    assert.equal(await live.locator("#shown").innerText(), count, path);
    const shown = await names(live);
    assert.ok(shown.length > 0, path);
    assert.deepEqual(shown, written.slice(0, shown.length), path);
    await Promise.all([still.context().close(), live.context().close()]);
  }
  await calm.stop();
});

test("without JavaScript everything is there, and search is a form", async () => {
  const page = await browser.open(server.url, { javaScriptEnabled: false });
  assert.ok((await names(page)).includes("shop/checkout"));
  assert.ok((await page.locator("#findings li").count()) >= 3);
  await page.locator("#q").fill("media");
  await page.getByRole("button", { name: "Search" }).click();
  assert.match(page.url(), /q=media/);
  assert.ok((await names(page)).every((name) => name.startsWith("media/")));
  await page.locator("#rows tbody a").first().click();
  await page.getByRole("heading", { level: 2, name: "Timeline" }).waitFor();
});

test("without a stream search, filters and sorting are the server's", async () => {
  const said = browser.wrong.length;
  const page = await browser.open(server.url);
  await page.route("**/api/v1/events*", (route) => route.fulfill({ status: 503, body: "" }));
  await page.reload();
  await page.locator('#live[data-is="lost"]').waitFor();
  await page.locator("#q").fill("media");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=media/);
  assert.ok((await names(page)).length > 0);
  assert.ok((await names(page)).every((name) => name.startsWith("media/")));
  await page.locator("#q").fill("");
  await page.locator("#kind").selectOption("egress");
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(/kind=egress/);
  assert.equal((await names(page)).length, 6);
  await page.locator('#rows a[data-sort="addresses"]').click();
  await page.waitForURL(/sort=addresses/);
  assert.equal(await page.locator('#rows th[aria-sort]').innerText(), "Addresses");
  await page.context().close();
  // The browser itself writes that the stream was refused; that is the only thing that it may write.
  const more = browser.wrong.splice(said);
  assert.ok(more.length > 0 && more.every((text) => text.includes("status of 503")), more.join("\n"));
});

test("it is dark where the system is, and a switch is remembered", async () => {
  const page = await browser.open(server.url, { colorScheme: "dark" });
  await isLive(page);
  await page.getByText("2 Services waiting for Azure quota").waitFor();
  assert.ok(isDark(await background(page)));
  await shoot(page, "front-dark");
  await page.getByRole("button", { name: "Use light colors" }).click();
  assert.ok(!isDark(await background(page)));
  await page.reload();
  assert.ok(!isDark(await background(page)));
  await page.keyboard.press("t");
  assert.ok(isDark(await background(page)));
});

test("a phone and a tablet show every column without scrolling sideways", async () => {
  const page = await browser.open(server.url, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await isLive(page);
  await shoot(page, "phone-top");
  for (const path of ["/services/shop/checkout", "/"]) {
    for (const width of [320, 390, 768, 901, 1024, 1101, 1280]) {
      const other = await browser.open(at(path), { viewport: { width, height: 800 } });
      await isLive(other);
      const wide = await other.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${path} is ${wide} wide on a screen of ${width}`);
      await other.context().close();
    }
  }
  await page.locator("#table").scrollIntoViewIfNeeded();
  await page.evaluate(() => document.getElementById("table").scrollIntoView());
  const row = page.locator("#rows tbody tr", { hasText: "shop/checkout" });
  await row.getByText("NotStarted").waitFor();
  await shoot(page, "phone-table");
  const lines = [row];
  for (const width of [800, 930]) {
    const tablet = await browser.open(at("/?q=shop/checkout"), { viewport: { width, height: 900 } });
    await isLive(tablet);
    await tablet.evaluate(() => document.getElementById("table").scrollIntoView());
    await tablet.locator("#rows tbody tr", { hasText: "shop/checkout" }).waitFor();
    await shoot(tablet, `tablet-${width}`);
    lines.push(tablet.locator("#rows tbody tr", { hasText: "shop/checkout" }));
  }
  for (const line of lines) {
    for (const part of [".name", ".state", ".age", ".attempts", ".addresses", ".reason"]) {
      const place = line.locator(part);
      await place.waitFor();
      // Nothing of it is cut off.
      assert.ok(await place.evaluate((it) => it.scrollWidth <= it.clientWidth), `${part} is cut off`);
      assert.notEqual((await place.innerText()).trim(), "", `${part} says nothing`);
    }
    assert.equal(await line.locator(".reason").innerText(), "QuotaExceeded");
  }
  await row.getByRole("link").tap();
  await page.getByRole("heading", { level: 1, name: "shop/checkout" }).waitFor();
  await shoot(page, "phone-detail");
});

test("a tab that nobody sees lets go of its stream, and catches up when it is seen", async () => {
  const page = await browser.open(server.url);
  await isLive(page);
  // The stream is open before its first message has fed the table.
  await page.locator("#rows[aria-rowcount]").waitFor();
  await page.locator("#q").fill("maps/meanwhile");
  await page.getByText("No matches.").waitFor();
  const hide = (hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await hide(true);
  await page.locator('#live[data-is="resting"]').waitFor();
  server.tell("apply maps/meanwhile 1");
  const other = await browser.open(at("/?q=maps/meanwhile"));
  await other.locator("#rows").getByText("Created").waitFor();
  assert.deepEqual(await names(page), []);
  await hide(false);
  await page.locator("#rows").getByText("Created").waitFor();
  server.tell("delete maps/meanwhile");
  await page.getByText("No matches.").waitFor();
});

test("the keyboard is enough", async () => {
  const page = await browser.open(server.url);
  await isLive(page);
  await page.locator("#rows[aria-rowcount]").waitFor();
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Skip to content");
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible());
  await page.keyboard.press("Escape");
  assert.ok(!(await page.locator("#keys").isVisible()));
  await page.keyboard.press("j");
  const first = await focused();
  await page.keyboard.press("j");
  const second = await focused();
  assert.notEqual(first, second);
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), first);
  await page.keyboard.press("G");
  const last = await focused();
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid");
  await page.keyboard.press("k");
  assert.notEqual(await focused(), last);
  await page.keyboard.press("/");
  await page.keyboard.type("games/lobby");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "games/lobby");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "games/lobby" }).waitFor();
  await page.keyboard.press("h");
  await page.getByRole("heading", { level: 2, name: "Findings" }).waitFor();
});

test("axe-core has nothing serious to say about any page, light or dark, wide or narrow", async () => {
  const looks = [["light", 1440], ["dark", 390], ["dark", 1440], ["light", 390]];
  for (const path of ["/", "/services/shop/checkout", "/services/games/lobby", "/egresses/blue", "/nothing-here"]) {
    // The front page in every way, the others once in each colour.
    for (const [colorScheme, width] of path === "/" ? looks : looks.slice(0, 2)) {
      const page = await browser.open(at(path), { colorScheme, viewport: { width, height: 900 } });
      if (path !== "/nothing-here") await isLive(page);
      if (path === "/") await page.locator("#rows[aria-rowcount]").waitFor();
      assert.deepEqual(await serious(page), [], `${path}, ${colorScheme}, ${width} wide`);
      await page.context().close();
    }
  }
});

test("with a token a browser asks for it, and the stream is live behind it", async () => {
  const guarded = await serve("--token", "s3cret", "--services", "3", "--egresses", "0", "--calm");
  try {
    const refused = await fetch(guarded.url);
    assert.equal(refused.status, 401);
    const page = await browser.open(guarded.url, { httpCredentials: { username: "me", password: "s3cret" } });
    await isLive(page);
    await page.getByText("All 3 Services are served.").waitFor();
    assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)), "{}{}");
    await page.context().close();
  } finally {
    await guarded.stop();
  }
});

test("a server that goes away is said, nothing is fine any more, ages stop, and nothing else breaks", async () => {
  const short = await serve("--services", "3", "--egresses", "0", "--calm");
  const page = await browser.open(short.url);
  await isLive(page);
  await page.locator("#findings .fine").waitFor();
  assert.equal(await page.locator("#stale").isVisible(), false);
  const said = browser.wrong.length;
  await short.stop();
  await page.locator('#live[data-is="lost"]').waitFor();
  await page.locator("#stale").waitFor();
  assert.match(await page.locator("#stale").innerText(), /^No answer from the controller since \d\d:\d\d:\d\d\. This page is out of date\.$/);
  assert.equal(await page.locator(".fine:visible").count(), 0);
  // Ages are written every second while they count.
  const changes = await page.evaluate(() => new Promise((resolve) => {
    let changes = 0;
    new MutationObserver(() => { changes += 1; }).observe(document.getElementById("rows"), { subtree: true, childList: true, characterData: true });
    setTimeout(() => resolve(changes), 2500);
  }));
  assert.equal(changes, 0);
  await shoot(page, "stale");
  assert.deepEqual(await names(page), ["bank/web", "media/web", "shop/web"]);
  // The browser itself writes that nobody answers; that is the only thing that it may write.
  await page.context().close();
  const more = browser.wrong.splice(said);
  assert.ok(more.every((text) => text.includes("net::ERR_")), more.join("\n"));
});

test("nothing was written to the console of any page, and no other host was asked", () => {
  // A page for what does not exist is answered with 404, and the browser writes that down: of these two.
  const missing = /status of 404.*\((\/nothing-here|\/services\/mail\/later)\)$/;
  assert.deepEqual(browser.wrong.filter((text) => !missing.test(text)), []);
});
