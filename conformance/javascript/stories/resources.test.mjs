// Every kind of resource is created, read, listed, changed and deleted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Gateway } from "../gateways.mjs";
import { refused } from "../refusals.mjs";
import * as shapes from "../shapes.mjs";
import { all, pages, withHeader, world } from "../worlds.mjs";

const { network, resources, quickly } = world;

const namesInGroup = async (kind, group) => (await all(network[kind].list(group))).map((it) => it.name);

/** The life of one resource up to its deletion; gives back what it was in the end. */
async function isCreatedReadListedTaggedAndReplaced(kind, group, name, shape) {
  const operations = network[kind];
  const made = await world.put(kind, group, name, shape);
  assert.deepEqual([made.name, made.location, made.provisioningState], [name, shapes.LOCATION, "Succeeded"]);
  const read = await operations.get(group, name);
  assert.deepEqual([read.id, read.etag], [made.id, made.etag]);
  assert.ok((await namesInGroup(kind, group)).includes(name));
  assert.ok((await all(operations.listAll())).some((it) => it.id === made.id));

  const tagged = await operations.updateTags(group, name, { tags: { colour: "blue" } });
  assert.deepEqual(tagged.tags, { colour: "blue" });
  assert.notEqual(tagged.etag, made.etag);

  const tags = { colour: "green", size: "small" };
  const replaced = await world.put(kind, group, name, { ...shape, tags });
  assert.deepEqual([replaced.tags, replaced.id], [tags, made.id]);
  return replaced;
}

/** Gone, from the lists too; and deleting it once more does no harm. */
async function isDeleted(kind, group, name) {
  await network[kind].beginDeleteAndWait(group, name, quickly);
  await refused(404, "ResourceNotFound", () => network[kind].get(group, name));
  assert.ok(!(await namesInGroup(kind, group)).includes(name));
  await network[kind].beginDeleteAndWait(group, name, quickly);
}

test("a resource group lives and dies", async () => {
  const groups = resources.resourceGroups;
  const name = world.freshName("group");
  assert.equal((await groups.checkExistence(name)).body, false);
  const made = await groups.createOrUpdate(name, { location: shapes.LOCATION, tags: { colour: "blue" } });
  assert.deepEqual([made.name, made.tags], [name, { colour: "blue" }]);
  assert.equal(made.properties.provisioningState, "Succeeded");
  assert.equal((await groups.checkExistence(name.toUpperCase())).body, true);
  assert.equal((await groups.get(name)).id, made.id);
  assert.ok((await all(groups.list())).some((it) => it.name === name));
  assert.deepEqual((await groups.update(name, { tags: { colour: "green" } })).tags, { colour: "green" });
  await groups.beginDeleteAndWait(name, quickly);
  await refused(404, "ResourceGroupNotFound", () => groups.get(name));
});

test("what is in a resource group goes with it", async () => {
  const group = await world.freshGroup();
  await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  await resources.resourceGroups.beginDeleteAndWait(group, quickly);
  await refused(404, "ResourceGroupNotFound", () => network.publicIPAddresses.get(group, "address"));
});

test("a virtual network lives and dies with its subnets", async () => {
  const group = await world.freshGroup();
  const shape = shapes.network({ nodes: "10.0.0.0/24", pods: "10.0.1.0/24" });
  const made = await isCreatedReadListedTaggedAndReplaced("virtualNetworks", group, "net", shape);
  assert.deepEqual(made.addressSpace.addressPrefixes, ["10.0.0.0/16"]);
  const subnets = made.subnets.map((it) => [it.name, it.addressPrefix]);
  assert.deepEqual(subnets, [["nodes", "10.0.0.0/24"], ["pods", "10.0.1.0/24"]]);
  const listed = (await all(network.subnets.list(group, "net"))).map((it) => it.name);
  assert.deepEqual(listed, ["nodes", "pods"]);
  await isDeleted("virtualNetworks", group, "net");
});

test("a subnet lives and dies", async () => {
  const group = await world.freshGroup();
  await world.put("virtualNetworks", group, "net", shapes.network());
  const { subnets } = network;
  const put = (shape) => subnets.beginCreateOrUpdateAndWait(group, "net", "nodes", shape, quickly);
  const made = await put({ addressPrefix: "10.0.7.0/24" });
  assert.deepEqual([made.name, made.addressPrefix, made.provisioningState], ["nodes", "10.0.7.0/24", "Succeeded"]);
  const read = await subnets.get(group, "net", "nodes");
  assert.deepEqual([read.id, read.etag], [made.id, made.etag]);
  assert.deepEqual((await all(subnets.list(group, "net"))).map((it) => it.name), ["nodes"]);

  const changed = await put({ ...read, addressPrefix: "10.0.8.0/24" });
  assert.equal(changed.addressPrefix, "10.0.8.0/24");
  assert.notEqual(changed.etag, made.etag);
  const parent = await network.virtualNetworks.get(group, "net");
  assert.equal(parent.subnets[0].addressPrefix, "10.0.8.0/24");

  await subnets.beginDeleteAndWait(group, "net", "nodes", quickly);
  await refused(404, "NotFound", () => subnets.get(group, "net", "nodes"));
  assert.deepEqual(await all(subnets.list(group, "net")), []);
});

for (const [family, beginning] of [["IPv4", "198.1"], ["IPv6", "2001:db8:"]]) {
  test(`a public ip lives and dies [${family}]`, async () => {
    const group = await world.freshGroup();
    const kind = "publicIPAddresses";
    const made = await isCreatedReadListedTaggedAndReplaced(kind, group, "address", shapes.publicIp(family));
    assert.deepEqual([made.sku.name, made.publicIPAddressVersion], ["StandardV2", family]);
    assert.ok(made.ipAddress.startsWith(beginning), made.ipAddress);
    const other = await world.put(kind, group, "other", shapes.publicIp(family));
    assert.notEqual(other.ipAddress, made.ipAddress);
    await isDeleted(kind, group, "address");
  });
}

test("a load balancer lives and dies", async () => {
  const group = await world.freshGroup();
  await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  const [id, ip] = [world.id(group, "loadBalancers", "web"), world.id(group, "publicIPAddresses", "address")];
  const shape = shapes.loadBalancer(id, ip, [80, 443]);
  const made = await isCreatedReadListedTaggedAndReplaced("loadBalancers", group, "web", shape);
  assert.deepEqual([made.sku.name, made.scope], ["Service", "Public"]);
  assert.equal(made.frontendIPConfigurations[0].publicIPAddress.id, ip);
  assert.equal(made.backendAddressPools[0].id, `${id}/backendAddressPools/web`);
  const rules = made.loadBalancingRules.map((it) => [it.name, it.backendPort]);
  assert.deepEqual(rules, [["rule-tcp-80", 8080], ["rule-tcp-443", 8443]]);
  const user = (await network.publicIPAddresses.get(group, "address")).ipConfiguration;
  assert.equal(user.id, made.frontendIPConfigurations[0].id);

  // A PUT replaces: a rule goes by not being named.
  const fewer = { ...shape, loadBalancingRules: shape.loadBalancingRules.slice(1) };
  const left = await world.put("loadBalancers", group, "web", fewer);
  assert.deepEqual(left.loadBalancingRules.map((it) => it.name), ["rule-tcp-443"]);
  await isDeleted("loadBalancers", group, "web");
  assert.ok(!(await network.publicIPAddresses.get(group, "address")).ipConfiguration);
});

test("a nat gateway lives and dies", async () => {
  const group = await world.freshGroup();
  const gateway = await Gateway.make(world, group);
  await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  const ip = world.id(group, "publicIPAddresses", "address");
  const shape = shapes.natGateway(gateway.id, ip);
  const made = await isCreatedReadListedTaggedAndReplaced("natGateways", group, "blue", shape);
  assert.deepEqual([made.sku.name, made.serviceGateway.id], ["StandardV2", gateway.id]);
  assert.deepEqual(made.publicIpAddresses.map((it) => it.id), [ip]);
  await world.put("publicIPAddresses", group, "address-v6", shapes.publicIp("IPv6"));
  const six = { id: world.id(group, "publicIPAddresses", "address-v6") };
  const both = await world.put("natGateways", group, "blue", { ...shape, publicIpAddressesV6: [six] });
  assert.deepEqual(both.publicIpAddressesV6.map((it) => it.id), [six.id]);
  // A literal null takes it out of its service gateway.
  const detached = await world.put("natGateways", group, "blue", shapes.natGateway(null, ip));
  assert.ok(!detached.serviceGateway);
  await isDeleted("natGateways", group, "blue");
});

test("a service gateway lives and dies", async () => {
  const group = await world.freshGroup();
  await world.put("virtualNetworks", group, "net", shapes.network({ nodes: "10.0.0.0/24" }));
  const net = world.id(group, "virtualNetworks", "net");
  const shape = shapes.gateway(net, `${net}/subnets/nodes`);
  const made = await isCreatedReadListedTaggedAndReplaced("serviceGateways", group, "gate", shape);
  assert.deepEqual([made.sku.name, made.sku.tier, made.virtualNetwork.id], ["Standard", "Regional", net]);
  assert.equal(made.routeTargetAddress.subnet.id, `${net}/subnets/nodes`);
  assert.equal(made.routeTargetAddress.privateIPAddress, "10.0.0.4");
  await isDeleted("serviceGateways", group, "gate");
});

test("a subnet is attached to a service gateway and let go", async () => {
  const group = await world.freshGroup();
  const gateway = await Gateway.make(world, group);
  const subnet = await network.subnets.get(group, "net", "nodes");
  const put = (shape, options) =>
    network.subnets.beginCreateOrUpdateAndWait(group, "net", "nodes", shape, { ...quickly, ...options });
  const attached = { ...subnet, serviceGateway: { id: gateway.id } };
  const made = await put(attached, withHeader("If-Match", subnet.etag));
  assert.equal(made.serviceGateway.id, gateway.id);
  const freed = await put({ ...subnet, serviceGateway: null });
  assert.ok(!freed.serviceGateway);
});

test("ids are read in any case", async () => {
  const group = await world.freshGroup();
  const made = await world.put("publicIPAddresses", group, "Address", shapes.publicIp());
  const read = await network.publicIPAddresses.get(group.toUpperCase(), "aDDRESS");
  assert.deepEqual([read.etag, read.name], [made.etag, "Address"]);
});

test("lists come page by page", async () => {
  const group = await world.freshGroup();
  const size = world.pageSize;
  const names = Array.from({ length: 2 * size + 1 }, (_, number) => `address-${number}`);
  await Promise.all(names.map((it) => world.put("publicIPAddresses", group, it, shapes.publicIp())));
  const found = await pages(network.publicIPAddresses.list(group));
  assert.deepEqual(found.map((page) => page.length), [size, size, 1]);
  assert.deepEqual(found.flat().map((it) => it.name).sort(), names.sort());
});

test("the quota is told", async () => {
  const group = await world.freshGroup();
  const publicIps = async () => {
    const usages = await all(network.usages.list(shapes.LOCATION));
    return usages.find((it) => it.name.value === "PublicIPAddresses");
  };
  const before = await publicIps();
  await world.put("publicIPAddresses", group, "address", shapes.publicIp());
  const after = await publicIps();
  assert.equal(after.unit, "Count");
  assert.equal(after.limit, before.limit);
  assert.ok(after.currentValue > 0 && after.currentValue < after.limit);
});
