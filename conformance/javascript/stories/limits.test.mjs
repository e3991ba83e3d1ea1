// Throttling: the client is told how much is left, is made to wait, waits, and gets through.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import * as shapes from "../shapes.mjs";
import { all, start, world } from "../worlds.mjs";

const throttled = await start("throttled");
after(() => throttled.stop());

test("the remaining calls are told and fall", async () => {
  const group = await throttled.freshGroup();
  const path = `/resourceGroups/${group}/providers/Microsoft.Network/publicIPAddresses`;
  const remaining = async () => {
    const answer = await throttled.raw("GET", path);
    return Number(answer.headers.get("x-ms-ratelimit-remaining-subscription-reads"));
  };
  const first = await remaining();
  const others = [];
  for (let at = 0; at < 10; at += 1) others.push(await remaining());
  assert.ok(Math.min(...others) < first, `${first}, then ${others}`);
});

test("each bucket tells what is left", async () => {
  const group = await world.freshGroup();
  const path = `/resourceGroups/${group}/providers/Microsoft.Network/publicIPAddresses`;
  const properties = { publicIPAllocationMethod: "Static" };
  const body = JSON.stringify({ location: shapes.LOCATION, sku: { name: "StandardV2" }, properties });
  for (const [method, name, bucket] of [
    ["PUT", "new", "writes"],
    ["GET", "new", "reads"],
    ["DELETE", "nobody", "deletes"],
  ]) {
    const answer = await world.raw(method, `${path}/${name}`, method === "PUT" ? { body } : {});
    assert.ok(answer.status < 300);
    for (const scope of ["subscription", "subscription-global"]) {
      const left = answer.headers.get(`x-ms-ratelimit-remaining-${scope}-${bucket}`);
      assert.ok(Number(left) > 0, `${scope} ${bucket}: ${left}`);
    }
  }
});

test("a throttled client waits as it is told and gets through", async () => {
  // The bucket is tiny, the client's own retry does the rest.
  const group = await throttled.freshGroup();
  const names = ["address-0", "address-1", "address-2", "address-3"];
  for (const name of names) await throttled.put("publicIPAddresses", group, name, shapes.publicIp());
  const listed = await all(throttled.network.publicIPAddresses.list(group));
  assert.deepEqual(listed.map((it) => it.name).sort(), names);

  const writes = await throttled.writesInto(group);
  assert.ok(writes.some((it) => it.status === 429), "nothing was throttled");
  writes.forEach((refused, at) => {
    if (refused.status !== 429) return;
    const again = writes[at + 1];
    assert.equal(again.path, refused.path);
    const waited = again.arrivedMs - refused.answeredMs;
    assert.ok(waited >= 1000 * refused.retryAfter, `${waited} ms of ${refused.retryAfter} s`);
  });
});
