// Requests that no client would send are answered as the resource manager does: 400, with a code.
//
// They go out by hand, with a valid token.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Gateway } from "../gateways.mjs";
import { world } from "../worlds.mjs";

const ADDRESS = "providers/Microsoft.Network/publicIPAddresses/address";

const BODIES = [
  ["no body", "", "InvalidRequestContent"],
  ["half a body", '{"location": "eastus2", ', "InvalidRequestContent"],
  ["a list", "[]", "InvalidRequestContent"],
  ["tags that are text", { location: "eastus2", tags: "blue" }, "InvalidRequestContent"],
  [
    "a version that is a number",
    { location: "eastus2", properties: { publicIPAddressVersion: 4 } },
    "InvalidRequestFormat",
  ],
  ["no location", { properties: {} }, "LocationRequired"],
];

for (const [what, body, code] of BODIES) {
  test(`a body that is not what it should be is refused [${what}]`, async () => {
    const group = await world.freshGroup();
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await world.raw("PUT", `/resourceGroups/${group}/${ADDRESS}`, { body: text });
    assert.deepEqual([answer.status, answer.json.error.code], [400, code]);
    assert.ok(answer.json.error.message);
    assert.equal((await world.raw("GET", `/resourceGroups/${group}/${ADDRESS}`)).status, 404);
  });
}

test("a request without api version is refused", async () => {
  const group = await world.freshGroup();
  const answer = await world.raw("GET", `/resourceGroups/${group}/${ADDRESS}`, { apiVersion: null });
  assert.deepEqual([answer.status, answer.json.error.code], [400, "MissingApiVersionParameter"]);
});

test("an api version that does not exist is refused", async () => {
  const group = await world.freshGroup();
  const answer = await world.raw("GET", `/resourceGroups/${group}/${ADDRESS}`, { apiVersion: "1999-01-01" });
  assert.equal(answer.status, 400);
  assert.match(answer.json.error.code, /^(InvalidApiVersionParameter|NoRegisteredProviderFound)$/);
});

test("a kind that is not emulated says so", async () => {
  const group = await world.freshGroup();
  const path = `/resourceGroups/${group}/providers/Microsoft.Network/azureFirewalls/wall`;
  const answer = await world.raw("GET", path);
  assert.ok(answer.status >= 400 && answer.status < 500);
  assert.match(answer.json.error.message, /azureFirewalls/);
});

test("a method that makes no sense is refused", async () => {
  const group = await world.freshGroup();
  const answer = await world.raw("POST", `/resourceGroups/${group}/${ADDRESS}`, { body: "{}" });
  assert.ok([404, 405].includes(answer.status), String(answer.status));
  assert.ok(answer.json.error.code);
});

test("gateway updates with broken bodies change nothing", async () => {
  const gateway = await Gateway.withServices(world, await world.freshGroup());
  const path = `/resourceGroups/${gateway.group}/providers/Microsoft.Network/serviceGateways/${gateway.name}`;
  const broken = { addressLocation: "not an address", addresses: [] };
  for (const [action, body] of [
    ["updateServices", { action: "Sideways", serviceRequests: [] }],
    ["updateServices", { action: "PartialUpdate", serviceRequests: {} }],
    ["updateAddressLocations", { action: "PartialUpdate", addressLocations: [broken] }],
  ]) {
    const answer = await world.raw("POST", `${path}/${action}`, { body: JSON.stringify(body) });
    assert.equal(answer.status, 400, `${action} ${JSON.stringify(body)}`);
    assert.ok(answer.json.error.code);
  }
  assert.deepEqual(Object.keys(await gateway.services()).sort(), ["blue", "web"]);
  assert.deepEqual(await gateway.locations(), {});
});
