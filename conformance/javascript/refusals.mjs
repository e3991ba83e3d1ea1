// A refusal as the clients report it.

import assert from "node:assert/strict";

/** What is done inside is refused, at once or at the end of its operation; gives back the error. */
export async function refused(status, code, action) {
  const error = await action().then(
    () => assert.fail(`nothing was refused; expected ${status} ${code}`),
    (error) => error,
  );
  const matches = code instanceof RegExp ? code.test(error.code) : error.code === code;
  if (error.name === "AssertionError" || !matches || error.statusCode !== status) {
    throw new assert.AssertionError({
      message: `expected ${status} ${code}, got ${error.statusCode} ${error.code}: ${error.message}`,
      actual: [error.statusCode, error.code],
      expected: [status, String(code)],
    });
  }
  assert.ok(error.message);
  return error;
}
