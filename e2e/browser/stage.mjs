// Starts the example that serves the dashboard, and a browser that looks at it, and watches both.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

const setting = (name) => process.env[name] ?? assert.fail(`${name} is not set; run this with \`cargo xtask browser\``);
const require = createRequire(join(setting("SLUICE_BROWSER_PACKAGES"), "package.json"));
const { chromium } = require("playwright-core");
const axe = require("axe-core").source;
export const artefacts = setting("SLUICE_ARTEFACTS");
mkdirSync(artefacts, { recursive: true });

/** What still runs; a test that fails leaves its server behind, and node waits for every child. */
const running = new Set();
after(() => {
  for (const child of running) child.kill();
});

/** The example; gives its address and a way to tell it what happens in the cluster. */
export async function serve(...wishes) {
  const child = spawn(setting("SLUICE_DASHBOARD"), wishes, { stdio: ["pipe", "pipe", "inherit"] });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const lines = createInterface({ input: child.stdout });
  const { url } = await new Promise((resolve, reject) => {
    lines.once("line", (line) => resolve(JSON.parse(line)));
    child.once("exit", (code) => reject(new Error(`the example ended with ${code} before it was ready`)));
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return {
    url,
    tell: (line) => child.stdin.write(`${line}\n`),
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

/** A browser; what goes wrong in any of its pages is collected, and found at the end. */
export async function browse() {
  const browser = await chromium.launch({
    executablePath: setting("SLUICE_CHROMIUM"),
    args: [
      "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
  const wrong = [];
  const contexts = new Set();
  return {
    wrong,
    /** Closes all pages: one that follows the stream goes on drawing. */
    async closePages() {
      await Promise.all([...contexts].map((context) => context.close()));
    },
    /** A page of a fresh context. */
    async open(url, options = {}) {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
      contexts.add(context);
      context.once("close", () => contexts.delete(context));
      const page = await context.newPage();
      const host = new URL(url).host;
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) wrong.push(`console: ${message.text()} (${new URL(message.location().url || url).pathname})`);
      });
      page.on("pageerror", (error) => wrong.push(`error: ${error.stack}`));
      page.on("request", (request) => {
        const asked = new URL(request.url());
        if (asked.protocol.startsWith("http") && asked.host !== host) wrong.push(`another host: ${request.url()}`);
      });
      await page.goto(url);
      return page;
    },
    close: () => browser.close(),
  };
}

/** Comes back when the page follows the stream. */
export const isLive = (page) => page.locator('#live[data-is="live"]').waitFor();

/** The names in the table, in order. */
export const names = (page) => page.locator("#rows tbody th.name a").allTextContents();

/** What axe-core finds that is serious. Evaluated from outside, since the policy lets no script in. */
export async function serious(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
}

export const shoot = (page, name, options = {}) => page.screenshot({ path: join(artefacts, `${name}.png`), ...options });
