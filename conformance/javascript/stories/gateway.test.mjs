// The gateway's own two lists: which services it knows, and which address lives where.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Gateway, address, inbound, location, outbound } from "../gateways.mjs";
import { pages, world } from "../worlds.mjs";

const bare = async () => Gateway.make(world, await world.freshGroup());
const withServices = async () => Gateway.withServices(world, await world.freshGroup());

test("an inbound service is registered cleared and unregistered", async () => {
  const gateway = await bare();
  const pool = await gateway.makeLoadBalancer("web");
  await gateway.updateServices("PartialUpdate", inbound("web", [pool]));
  const { web, ...others } = await gateway.services();
  assert.deepEqual([web.serviceType, Boolean(web.isDefault), others], ["Inbound", false, {}]);
  assert.deepEqual(web.loadBalancerBackendPools.map((it) => it.id), [pool]);

  await gateway.updateServices("PartialUpdate", inbound("web"));
  assert.deepEqual((await gateway.services()).web.loadBalancerBackendPools ?? [], []);
  await gateway.network.loadBalancers.beginDeleteAndWait(gateway.group, "web", world.quickly);
  await gateway.updateServices("PartialUpdate", inbound("web", [], { isDelete: true }));
  assert.deepEqual(await gateway.services(), {});
});

test("an outbound service is registered cleared and unregistered", async () => {
  const gateway = await bare();
  const nat = await gateway.makeNatGateway("blue");
  await gateway.updateServices("PartialUpdate", outbound("blue", nat, { isDefault: true }));
  const { blue } = await gateway.services();
  assert.deepEqual([blue.serviceType, blue.isDefault, blue.publicNatGatewayId], ["Outbound", true, nat]);

  await gateway.updateServices("PartialUpdate", outbound("blue", null));
  assert.ok(!(await gateway.services()).blue.publicNatGatewayId);
  await gateway.updateServices("PartialUpdate", outbound("blue", undefined, { isDelete: true }));
  assert.deepEqual(await gateway.services(), {});
  await gateway.network.natGateways.beginDeleteAndWait(gateway.group, "blue", world.quickly);
});

test("several services ride in one request", async () => {
  const gateway = await withServices();
  assert.deepEqual(Object.keys(await gateway.services()).sort(), ["blue", "web"]);
});

test("a full update of services replaces all of them", async () => {
  const gateway = await bare();
  const [old, fresh] = [await gateway.makeLoadBalancer("old"), await gateway.makeLoadBalancer("new")];
  await gateway.updateServices("PartialUpdate", inbound("old", [old]));
  await gateway.updateServices("FullUpdate", inbound("new", [fresh]));
  assert.deepEqual(Object.keys(await gateway.services()), ["new"]);
});

test("addresses are bound changed and unbound one by one", async () => {
  const gateway = await withServices();
  const first = location("10.0.0.10", [address("10.1.0.1", "web", "blue"), address("10.1.0.2", "web")]);
  await gateway.updateLocations("PartialUpdate", first, location("10.0.0.11", [address("10.1.0.3", "web")]));
  assert.deepEqual(await gateway.locations(), {
    "10.0.0.10": { "10.1.0.1": ["blue", "web"], "10.1.0.2": ["web"] },
    "10.0.0.11": { "10.1.0.3": ["web"] },
  });
  const change = location("10.0.0.10", [address("10.1.0.1", "blue"), address("10.1.0.2")]);
  await gateway.updateLocations("PartialUpdate", change);
  assert.deepEqual(await gateway.locations(), {
    "10.0.0.10": { "10.1.0.1": ["blue"] },
    "10.0.0.11": { "10.1.0.3": ["web"] },
  });
});

test("a full update of one location replaces its addresses", async () => {
  const gateway = await withServices();
  const first = location("10.0.0.10", [address("10.1.0.1", "web"), address("10.1.0.2", "web")]);
  await gateway.updateLocations("PartialUpdate", first, location("10.0.0.11", [address("10.1.0.3", "web")]));
  const full = location("10.0.0.10", [address("10.1.0.9", "web")], "FullUpdate");
  await gateway.updateLocations("PartialUpdate", full);
  assert.deepEqual(await gateway.locations(), {
    "10.0.0.10": { "10.1.0.9": ["web"] },
    "10.0.0.11": { "10.1.0.3": ["web"] },
  });
});

test("a full update of locations replaces all of them", async () => {
  const gateway = await withServices();
  await gateway.updateLocations("PartialUpdate", location("10.0.0.10", [address("10.1.0.1", "web")]));
  const full = location("10.0.0.12", [address("10.1.0.4", "blue")], "FullUpdate");
  await gateway.updateLocations("FullUpdate", full);
  assert.deepEqual(await gateway.locations(), { "10.0.0.12": { "10.1.0.4": ["blue"] } });
});

test("a location without addresses is removed", async () => {
  const gateway = await withServices();
  await gateway.updateLocations("PartialUpdate", location("10.0.0.10", [address("10.1.0.1", "web")]));
  await gateway.updateLocations("PartialUpdate", location("10.0.0.10", []));
  assert.deepEqual(await gateway.locations(), {});
});

test("ipv6 addresses live on ipv6 locations", async () => {
  const gateway = await withServices();
  await gateway.updateLocations("PartialUpdate", location("fd00::10", [address("fd00:1::1", "web")]));
  assert.deepEqual(await gateway.locations(), { "fd00::10": { "fd00:1::1": ["web"] } });
});

test("services and locations come page by page", async () => {
  const gateway = await withServices();
  const numbers = Array.from({ length: world.pageSize + 1 }, (_, at) => at + 1);
  await gateway.updateServices("PartialUpdate", ...numbers.map((at) => outbound(`egress-${at}`)));
  const nodes = numbers.map((at) => location(`10.0.1.${at}`, [address(`10.1.1.${at}`, "web")]));
  await gateway.updateLocations("PartialUpdate", ...nodes);
  const operations = gateway.network.serviceGateways;
  const services = await pages(operations.listServices(gateway.group, gateway.name));
  assert.deepEqual(services.map((page) => page.length), [world.pageSize, 3]);
  const locations = await pages(operations.listAddressLocations(gateway.group, gateway.name));
  assert.deepEqual(locations.map((page) => page.length), [world.pageSize, 1]);
});

test("an address that moves is in one place at a time", async () => {
  const gateway = await withServices();
  await gateway.updateLocations("PartialUpdate", location("10.0.0.10", [address("10.1.0.1", "web")]));
  const away = location("10.0.0.10", [address("10.1.0.1")]);
  const there = location("10.0.0.11", [address("10.1.0.1", "web")]);
  await gateway.updateLocations("PartialUpdate", away, there);
  assert.deepEqual(await gateway.locations(), { "10.0.0.11": { "10.1.0.1": ["web"] } });
});
