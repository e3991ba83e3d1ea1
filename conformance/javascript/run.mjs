// Runs all stories with one version of the client, in a world that is started before node reads its
// certificates: NODE_EXTRA_CA_CERTS counts only at the start of a process.
//
//   SLUICE_BINARY         the binary that has the emulator
//   CONFORMANCE_PACKAGES  the folder whose node_modules has the clients
//   CONFORMANCE_CLIENT    36 or 39
//   CONFORMANCE_RESULTS   where a line per test is written; optional
//
// Words behind are handed to node's test runner: --test-name-pattern=…

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { startProcess } from "./process.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const stories = readdirSync(join(here, "stories")).map((name) => join(here, "stories", name));
const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
const results = process.env.CONFORMANCE_RESULTS;
if (results) reporters.push(`--test-reporter=${here}lines.mjs`, `--test-reporter-destination=${results}`);

const folder = mkdtempSync(join(tmpdir(), "conformance-"));
const emulator = await startProcess("main", folder);
const env = {
  ...process.env,
  NODE_EXTRA_CA_CERTS: emulator.ready.caPath,
  CONFORMANCE_FOLDER: folder,
  CONFORMANCE_WORLD: JSON.stringify(emulator.ready),
};
// A story that hangs is a failure: every wait of the clients and of the emulator is shorter than this.
const words = ["--test", "--test-timeout=120000", ...reporters, ...process.argv.slice(2), ...stories];
const runner = spawn(process.execPath, words, { stdio: "inherit", env });
const code = await new Promise((done) => runner.on("close", done));
await emulator.stop();
rmSync(folder, { recursive: true });
process.exitCode = code === 0 ? 0 : 1;
