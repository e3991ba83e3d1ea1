// Ten thousand services with a hundred thousand addresses: how long until something is seen, how
// long a search takes, and whether scrolling keeps up. Times are reported and not judged, since they
// are the machine's as much as ours; how much is in the page at once is judged.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { artefacts, browse, isLive, names, serve, shoot } from "./stage.mjs";

const SERVICES = 10_000;
const ADDRESSES = 100_000;
const ROWS_MAX = 120;

let server;
let browser;
before(async () => {
  server = await serve("--services", String(SERVICES), "--addresses", String(ADDRESSES), "--egresses", "40", "--calm");
  browser = await browse();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const middle = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const worst = (numbers) => Math.max(...numbers);
const rounded = (number) => Math.round(number * 10) / 10;

test("ten thousand services are painted, searched and scrolled with few rows in the page", async () => {
  const measured = { services: SERVICES, addresses: ADDRESSES };
  const paints = [];
  const feeds = [];
  let page;
  for (let round = 0; round < 5; round += 1) {
    await page?.context().close();
    page = await browser.open(server.url);
    await page.locator("#rows[aria-rowcount]").waitFor();
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    feeds.push(await page.evaluate(() => performance.getEntriesByName("sluice-filter")[0].startTime));
  }
  await isLive(page);
  assert.equal(await page.locator("#shown").innerText(), "10,040 of 10,040");
  assert.ok((await names(page)).length <= ROWS_MAX);
  Object.assign(measured, { firstPaintMs: rounded(middle(paints)), wholeTableMs: rounded(middle(feeds)) });

  await page.evaluate(() => performance.clearMeasures());
  await page.locator("#q").pressSequentially("shop/web-12");
  await page.getByText("6 of 10,040").waitFor();
  assert.deepEqual(await names(page), ["shop/web-12", "shop/web-120", "shop/web-121", "shop/web-122", "shop/web-123", "shop/web-124"]);
  const filters = await page.evaluate(() => performance.getEntriesByName("sluice-filter").map((entry) => entry.duration));
  assert.ok(filters.length >= 11, "every key filters");
  Object.assign(measured, { filterMs: rounded(middle(filters)), filterWorstMs: rounded(worst(filters)) });
  await shoot(page, "large-search");

  await page.locator("#q").fill("");
  await page.getByText("10,040 of 10,040").waitFor();
  const frames = await page.evaluate(async () => {
    const spans = [];
    let last = performance.now();
    const end = document.documentElement.scrollHeight - innerHeight;
    for (let step = 1; step <= 120; step += 1) {
      scrollTo(0, (end * step) / 120);
      await new Promise(requestAnimationFrame);
      spans.push(performance.now() - last);
      last = performance.now();
    }
    return spans;
  });
  Object.assign(measured, { scrollFrameMs: rounded(middle(frames)), scrollFrameWorstMs: rounded(worst(frames)) });
  const shown = await names(page);
  assert.ok(shown.length > 5 && shown.length <= ROWS_MAX, `${shown.length} rows are in the page`);
  assert.equal(shown.at(-1), "shop/web-99", "the last row in order is at the end");
  await shoot(page, "large-end");

  server.tell("apply zoo/zebra 7");
  await page.getByText("10,041 of 10,041").waitFor();
  writeFileSync(join(artefacts, "measured.json"), `${JSON.stringify(measured, null, 2)}\n`);
  console.log(`measured ${JSON.stringify(measured)}`);
  assert.deepEqual(browser.wrong, []);
});
