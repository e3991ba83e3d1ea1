// A reporter of node's test runner that writes what the comparison of all clients reads: per test a
// line with its outcome, its name, and the reason if it was skipped.

export default async function* lines(source) {
  for await (const { type, data } of source) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    // The runner reports every file as a test of its own when one of them cannot be loaded.
    const outcome = type === "test:fail" ? "failed" : data.skip !== undefined ? "skipped" : "passed";
    const reason = typeof data.skip === "string" ? data.skip : "";
    yield `${outcome}\t${data.name}\t${reason}\n`;
  }
}
