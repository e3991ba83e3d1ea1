// A reporter of node's test runner that writes what the comparison of all clients reads: per test a
// line with outcome, subject, name, and the reason if it was skipped.

import { basename } from "node:path";

export default async function* lines(source) {
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    // A file that cannot be loaded is reported as one failed test.
    const outcome = type === "test:fail" ? "failed" : data.skip !== undefined ? "skipped" : "passed";
    const reason = typeof data.skip === "string" ? data.skip : "";
    const subject = basename(data.file ?? data.name, ".test.mjs");
    yield `${outcome}\t${subject}\t${data.name}\t${reason}\n`;
  }
}
