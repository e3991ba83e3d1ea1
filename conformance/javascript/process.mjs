// One emulator process: started, awaited, stopped.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

export const WORLDS = JSON.parse(readFileSync(new URL("../worlds.json", import.meta.url), "utf8"));

// Who may come in: the emulator is told, so that a wrong secret is one.
const CLIENT = "11111111-2222-3333-4444-555555555555=a secret for the stories";

/** Starts one of the worlds of `worlds.json`; ready when its first line says so. */
export async function startProcess(name, folder) {
  const binary = process.env.SLUICE_BINARY;
  if (!binary) throw new Error("SLUICE_BINARY does not say which binary has the emulator");
  const words = ["emulator", "--listen", "127.0.0.1:0", "--output", "json", "--log", "warn"];
  // In one folder, so that all worlds of a run have the same CA.
  words.push("--client", CLIENT, "--dir", folder, ...WORLDS[name]);
  const child = spawn(binary, words, { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise((done) => child.on("close", done));
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    new Promise((done) => lines.once("line", done)),
    gone.then((code) => Promise.reject(new Error(`the emulator ended with ${code} before it was ready`))),
  ]);
  const stop = async () => {
    child.kill("SIGTERM");
    const code = await gone;
    if (code !== 0) throw new Error(`the emulator ended with ${code} when it was told to stop`);
  };
  return { ready: { name, ...JSON.parse(first) }, stop };
}
