// Long-running operations: they run, end, fail and are resumed as the client expects.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Gateway } from "../gateways.mjs";
import * as shapes from "../shapes.mjs";
import { all, resume, start, world } from "../worlds.mjs";

const slow = await start("slow");
after(() => slow.stop());

const begin = (where, group) =>
  where.network.publicIPAddresses.beginCreateOrUpdate(group, "address", shapes.publicIp(), where.quickly);
const read = (where, group) => where.network.publicIPAddresses.get(group, "address");

test("a poller sees the operation run and then succeed", async () => {
  // At the latencies of the real thing the first poll finds nothing done yet.
  const group = await slow.freshGroup();
  const poller = await begin(slow, group);
  await poller.poll();
  assert.equal(poller.isDone(), false);
  assert.equal(poller.getOperationState().status, "running");
  assert.equal((await read(slow, group)).provisioningState, "Updating");
  assert.equal((await poller.pollUntilDone()).provisioningState, "Succeeded");
  assert.equal(poller.getOperationState().status, "succeeded");
});

test("an operation is resumed from its token", async () => {
  // As after a restart: another client goes on with what the first one began.
  const group = await slow.freshGroup();
  const state = (await begin(slow, group)).toString();
  const made = await resume(slow.networkFor(slow.credential()), state, group, "address", slow.quickly);
  assert.equal(made.provisioningState, "Succeeded");
  assert.equal((await slow.writesInto(group)).length, 1);
});

test("an operation that fails is the clients error", async () => {
  const group = await world.freshGroup();
  const lift = await world.fault(group, { fault: "fails", code: "InternalServerError" });
  await assert.rejects(async () => (await begin(world, group)).pollUntilDone(), /InternalServerError/);
  await lift();
  assert.equal((await read(world, group)).provisioningState, "Failed");
  // And writing it again mends it.
  const mended = await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  assert.equal(mended.provisioningState, "Succeeded");
});

test("an operation that is cancelled is the clients error", async () => {
  const group = await world.freshGroup();
  const lift = await world.fault(group, { fault: "canceled" });
  await assert.rejects(async () => (await begin(world, group)).pollUntilDone(), /cancel/i);
  await lift();
});

test("a server error is retried by the client", async () => {
  const group = await world.freshGroup();
  await world.fault(group, { fault: "unavailable", times: 2 });
  const made = await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  assert.equal(made.provisioningState, "Succeeded");
  assert.deepEqual((await world.writesInto(group)).map((it) => it.status), [503, 503, 201]);
});

test("a write whose answer is lost is repeated and made once", async () => {
  const group = await world.freshGroup();
  await world.fault(group, { fault: "noAnswer", times: 1 });
  const made = await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  assert.equal(made.provisioningState, "Succeeded");
  const listed = await all(world.network.publicIPAddresses.list(group));
  assert.deepEqual(listed.map((it) => it.name), ["address"]);
});

const VERSIONS = { "2025-05-01": 202, "2025-07-01": 202, "2025-09-01": 200, "2026-01-01": 200, "2026-03-01": 200 };

for (const [apiVersion, status] of Object.entries(VERSIONS)) {
  test(`the gateways posts are long running in old api versions only [${apiVersion}]`, async () => {
    const gateway = await Gateway.make(world, await world.freshGroup());
    const path = `/resourceGroups/${gateway.group}/providers/Microsoft.Network/serviceGateways/${gateway.name}`;
    const service = { name: "blue", properties: { serviceType: "Outbound", loadBalancerBackendPools: [] } };
    const body = JSON.stringify({ action: "PartialUpdate", serviceRequests: [{ isDelete: false, service }] });
    const answer = await world.raw("POST", `${path}/updateServices`, { body, apiVersion });
    assert.equal(answer.status, status);
    if (status === 202) {
      assert.match(answer.headers.get("azure-asyncoperation"), /^https:\/\/127\.0\.0\.1:/);
    } else {
      assert.deepEqual(answer.json, { status: "Succeeded" });
      assert.deepEqual(Object.keys(await gateway.services()), ["blue"]);
    }
  });
}
