// What Azure refuses is refused, with Azure's own code.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Gateway, address, inbound, location, outbound } from "../gateways.mjs";
import { refused } from "../refusals.mjs";
import * as shapes from "../shapes.mjs";
import { all, withHeader, world } from "../worlds.mjs";

const { network, quickly } = world;
const bare = async () => Gateway.make(world, await world.freshGroup());
const withServices = async () => Gateway.withServices(world, await world.freshGroup());

test("a public ip in use cannot be deleted", async () => {
  const gateway = await bare();
  await gateway.makeLoadBalancer("web");
  const action = () => network.publicIPAddresses.beginDeleteAndWait(gateway.group, "web-pip", quickly);
  await refused(400, "PublicIPAddressCannotBeDeleted", action);
});

test("a load balancer whose pool is registered cannot be deleted", async () => {
  const gateway = await withServices();
  await refused(400, /^InUse/, () => network.loadBalancers.beginDeleteAndWait(gateway.group, "web", quickly));
});

test("a nat gateway that is registered cannot be deleted", async () => {
  const gateway = await withServices();
  await refused(400, /^InUse/, () => network.natGateways.beginDeleteAndWait(gateway.group, "blue", quickly));
});

test("a service with mapped addresses cannot be unregistered", async () => {
  const gateway = await withServices();
  await gateway.updateLocations("PartialUpdate", location("10.0.0.10", [address("10.1.0.1", "web")]));
  const action = () => gateway.updateServices("PartialUpdate", inbound("web", [], { isDelete: true }));
  await refused(400, "ServiceWithOverlayMappingsCannotBeDeleted", action);
  assert.ok("web" in (await gateway.services()));
});

test("a location may be named only once", async () => {
  const gateway = await withServices();
  const twins = ["10.1.0.1", "10.1.0.2"].map((ip) => location("10.0.0.10", [address(ip, "web")]));
  await refused(400, "DuplicateLocationsInRequest", () => gateway.updateLocations("PartialUpdate", ...twins));
  assert.deepEqual(await gateway.locations(), {});
});

test("locations and addresses are of one family", async () => {
  const gateway = await withServices();
  const four = location("10.0.0.10", [address("fd00:1::1", "web")]);
  const six = location("fd00::10", [address("10.1.0.1", "web")]);
  const update = (it) => () => gateway.updateLocations("PartialUpdate", it);
  await refused(400, "IPv4LocationCannotContainIPv6Addresses", update(four));
  await refused(400, "IPv6LocationCannotContainIPv4Addresses", update(six));
});

test("two services cannot both be the default", async () => {
  const gateway = await bare();
  const asDefault = (name) => outbound(name, undefined, { isDefault: true });
  await gateway.updateServices("PartialUpdate", asDefault("blue"));
  const action = () => gateway.updateServices("PartialUpdate", asDefault("green"));
  await refused(400, "MultipleDefaultServicesNotAllowedInServiceGateway", action);
  assert.deepEqual(Object.keys(await gateway.services()), ["blue"]);
});

test("rules that share backend port protocol and pool are refused", async () => {
  const gateway = await bare();
  await gateway.makeLoadBalancer("web");
  const id = world.id(gateway.group, "loadBalancers", "web");
  const shape = shapes.loadBalancer(id, gateway.publicIp("web"), [80, 81]);
  shape.loadBalancingRules[1].backendPort = shape.loadBalancingRules[0].backendPort;
  const action = () => world.put("loadBalancers", gateway.group, "web", shape);
  await refused(400, "RulesUseSameBackendPortProtocolAndPool", action);
});

test("a reference to what is not there is refused", async () => {
  const group = await world.freshGroup();
  const nobody = world.id(group, "publicIPAddresses", "nobody");
  const shape = shapes.loadBalancer(world.id(group, "loadBalancers", "web"), nobody);
  await refused(400, "InvalidResourceReference", () => world.put("loadBalancers", group, "web", shape));
});

test("an unknown group is not found", async () => {
  const group = world.freshName("nowhere");
  const write = () => world.put("publicIPAddresses", group, "address", shapes.publicIp());
  await refused(404, "ResourceGroupNotFound", write);
  await refused(404, "ResourceGroupNotFound", () => all(network.publicIPAddresses.list(group)));
});

test("an unknown parent is not found", async () => {
  const group = await world.freshGroup();
  const shape = { addressPrefix: "10.0.0.0/24" };
  const write = () => network.subnets.beginCreateOrUpdateAndWait(group, "nowhere", "nodes", shape, quickly);
  await refused(404, "ParentResourceNotFound", write);
  await refused(404, "ResourceNotFound", () => all(network.serviceGateways.listServices(group, "nowhere")));
});

test("an unknown resource is not found", async () => {
  const group = await world.freshGroup();
  const missing = await refused(404, "ResourceNotFound", () => network.publicIPAddresses.get(group, "nobody"));
  assert.match(missing.message, /nobody/);
});

test("a stale etag is refused and changes nothing", async () => {
  const group = await world.freshGroup();
  await world.put("virtualNetworks", group, "net", shapes.network({ nodes: "10.0.0.0/24" }));
  const subnet = await network.subnets.get(group, "net", "nodes");
  const put = (addressPrefix) => {
    const options = { ...quickly, ...withHeader("If-Match", subnet.etag) };
    return network.subnets.beginCreateOrUpdateAndWait(group, "net", "nodes", { ...subnet, addressPrefix }, options);
  };
  await put("10.0.1.0/24");
  await refused(412, "PreconditionFailed", () => put("10.0.2.0/24"));
  assert.equal((await network.subnets.get(group, "net", "nodes")).addressPrefix, "10.0.1.0/24");
});

test("a name that azure does not allow is refused", async () => {
  const group = await world.freshGroup();
  const write = () => world.put("publicIPAddresses", group, "-no!", shapes.publicIp());
  await refused(400, "InvalidResourceName", write);
});

test("a subnet outside its network is refused", async () => {
  const group = await world.freshGroup();
  await world.put("virtualNetworks", group, "net", shapes.network());
  const shape = { addressPrefix: "192.168.0.0/24" };
  const write = () => network.subnets.beginCreateOrUpdateAndWait(group, "net", "nodes", shape, quickly);
  await refused(400, "NetcfgInvalidSubnet", write);
});

test("a network in use cannot be deleted", async () => {
  const gateway = await bare();
  await refused(400, /^InUse/, () => network.virtualNetworks.beginDeleteAndWait(gateway.group, "net", quickly));
});
