// A service gateway at the fingertips of a story, whichever version of the client is at work.
//
// In the older client the two POSTs are long-running operations, in the newer one they answer at
// once; that is the one difference that the stories need not know.

import assert from "node:assert/strict";

import { all } from "./worlds.mjs";
import * as shapes from "./shapes.mjs";

/** A service behind load balancers; without a pool it is cleared. */
export const inbound = (name, pools = [], { isDelete = false, isDefault = false } = {}) => ({
  isDelete,
  service: {
    name,
    serviceType: "Inbound",
    isDefault,
    loadBalancerBackendPools: pools.map((id) => ({ id })),
  },
});

/** A service behind a NAT gateway; with `null` it is cleared. */
export const outbound = (name, publicNatGatewayId, { isDelete = false, isDefault = false } = {}) => ({
  isDelete,
  service: { name, serviceType: "Outbound", isDefault, loadBalancerBackendPools: [], publicNatGatewayId },
});

export const address = (ip, ...services) => ({ address: ip, services });

export const location = (ip, addresses, addressUpdateAction = "PartialUpdate") => ({
  addressLocation: ip,
  addressUpdateAction,
  addresses,
});

/** One service gateway, and what is made around it. */
export class Gateway {
  constructor(world, group, name) {
    Object.assign(this, { world, network: world.network, group, name });
    this.id = world.id(group, "serviceGateways", name);
  }

  /** With a virtual network of its own. */
  static async make(world, group, name = "gate") {
    await world.put("virtualNetworks", group, "net", shapes.network({ nodes: "10.0.0.0/24" }));
    const net = world.id(group, "virtualNetworks", "net");
    await world.put("serviceGateways", group, name, shapes.gateway(net, `${net}/subnets/nodes`));
    return new Gateway(world, group, name);
  }

  /** With an inbound service "web" and an outbound service "blue". */
  static async withServices(world, group) {
    const gateway = await Gateway.make(world, group);
    const web = inbound("web", [await gateway.makeLoadBalancer("web")]);
    await gateway.updateServices("PartialUpdate", web, outbound("blue", await gateway.makeNatGateway("blue")));
    return gateway;
  }

  /** With its public IP; gives back the id of its pool. */
  async makeLoadBalancer(name) {
    await this.#makePublicIp(name);
    const ownId = this.world.id(this.group, "loadBalancers", name);
    await this.world.put("loadBalancers", this.group, name, shapes.loadBalancer(ownId, this.publicIp(name)));
    return `${ownId}/backendAddressPools/${name}`;
  }

  /** With its public IP; gives back its id. */
  async makeNatGateway(name) {
    await this.#makePublicIp(name);
    await this.world.put("natGateways", this.group, name, shapes.natGateway(this.id, this.publicIp(name)));
    return this.world.id(this.group, "natGateways", name);
  }

  publicIp(name) {
    return this.world.id(this.group, "publicIPAddresses", `${name}-pip`);
  }

  #makePublicIp(name) {
    return this.world.put("publicIPAddresses", this.group, `${name}-pip`, shapes.publicIp());
  }

  updateServices(action, ...serviceRequests) {
    return this.#post("updateServices", { action, serviceRequests });
  }

  updateLocations(action, ...addressLocations) {
    return this.#post("updateAddressLocations", { action, addressLocations });
  }

  async #post(action, body) {
    const operations = this.network.serviceGateways;
    const begin = operations[`begin${action[0].toUpperCase()}${action.slice(1)}AndWait`];
    if (begin) {
      await begin.call(operations, this.group, this.name, body, this.world.quickly);
    } else {
      assert.equal((await operations[action](this.group, this.name, body)).status, "Succeeded");
    }
  }

  /** By name. */
  async services() {
    const listed = await all(this.network.serviceGateways.listServices(this.group, this.name));
    return Object.fromEntries(listed.map((it) => [it.name, it]));
  }

  /** Location to address to the names of its services, in order. */
  async locations() {
    const listed = await all(this.network.serviceGateways.listAddressLocations(this.group, this.name));
    const addresses = (it) => Object.fromEntries(it.addresses.map((one) => [one.address, one.services.sort()]));
    return Object.fromEntries(listed.map((it) => [it.addressLocation, addresses(it)]));
  }
}
