// A world: an emulator process, and the official clients that talk to it.
//
// The clients are unmodified: they are told an address, an authority and a CA, as they would be for
// any cloud that is not the public one.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { join } from "node:path";

import { WORLDS, startProcess } from "./process.mjs";
import * as shapes from "./shapes.mjs";

// The packages are not beside the stories but where the build puts what it makes.
const require = createRequire(join(process.env.CONFORMANCE_PACKAGES, "package.json"));
const clientVersion = process.env.CONFORMANCE_CLIENT;
const armNetwork = require(`arm-network-${clientVersion}`);
const { ResourceManagementClient } = require("@azure/arm-resources");
export const identity = require("@azure/identity");

export class World {
  constructor(ready, stop) {
    this.endpoint = ready.url;
    this.control = ready.controlUrl.replace(/\/$/, "");
    this.scope = `${ready.url}/.default`;
    this.tenant = ready.tenantId;
    this.subscription = ready.subscriptionId;
    this.client = ready.clientId;
    this.secret = ready.clientSecret;
    this.identityEndpoint = ready.identityEndpoint;
    this.identityHeader = ready.identityHeader;
    this.identityOptions = { authorityHost: ready.url, disableInstanceDiscovery: true };
    const flags = WORLDS[ready.name];
    this.pageSize = flags.includes("--page-size") ? Number(flags[flags.indexOf("--page-size") + 1]) : 100;
    // The defaults of seconds between two polls are for operations of minutes.
    this.quickly = { updateIntervalInMs: 50 };
    this.network = this.networkFor(this.credential());
    this.resources = this.resourcesFor(this.credential());
    this.stop = stop;
  }

  // The clients.

  credential() {
    return new identity.ClientSecretCredential(this.tenant, this.client, this.secret, this.identityOptions);
  }

  networkFor(credential) {
    // The two generations ask for the scope in two ways.
    const scopes = { credentialScopes: this.scope, credentials: { scopes: [this.scope] } };
    const options = { endpoint: this.endpoint, ...scopes };
    return new armNetwork.NetworkManagementClient(credential, this.subscription, options);
  }

  resourcesFor(credential) {
    const options = { endpoint: this.endpoint, credentialScopes: this.scope };
    return new ResourceManagementClient(credential, this.subscription, options);
  }

  /** What Kubernetes would have put into the file of a workload identity. */
  federatedToken() {
    const claims = {
      iss: "https://kubernetes.example",
      sub: "system:serviceaccount:shop:sluice",
      aud: ["api://AzureADTokenExchange"],
      exp: Math.floor(Date.now() / 1000) + 3600,
    };
    const parts = [JSON.stringify({ alg: "RS256", typ: "JWT" }), JSON.stringify(claims), "unverified"];
    return parts.map((it) => Buffer.from(it).toString("base64url")).join(".");
  }

  // What stories need around the clients.

  freshName(word) {
    return `${word}-${randomUUID().slice(0, 8)}`;
  }

  async freshGroup() {
    const name = this.freshName("group");
    await this.resources.resourceGroups.createOrUpdate(name, { location: shapes.LOCATION });
    return name;
  }

  id(group, kind, name) {
    const prefix = `/subscriptions/${this.subscription}/resourceGroups/${group}/providers/Microsoft.Network`;
    return `${prefix}/${kind}/${name}`;
  }

  /** Writes a resource and waits for the end of it. */
  put(kind, group, name, shape) {
    return this.network[kind].beginCreateOrUpdateAndWait(group, name, shape, this.quickly);
  }

  /** A request by hand; with a valid token unless told otherwise. */
  async raw(method, path, { body, apiVersion = "2025-05-01", token } = {}) {
    const bearer = token === undefined ? (await this.credential().getToken(this.scope)).token : token;
    const headers = { "Content-Type": "application/json" };
    if (bearer !== null) headers.Authorization = `Bearer ${bearer}`;
    const query = apiVersion === null ? "" : `?api-version=${apiVersion}`;
    const url = `${this.endpoint}/subscriptions/${this.subscription}${path}${query}`;
    const answer = await fetch(url, { method, headers, body });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, json: text ? JSON.parse(text) : undefined };
  }

  // The emulator's own side of it.

  /** Something goes wrong with the writes into one group, until the returned function is called. */
  async fault(group, rule) {
    const match = { method: "PUT", path: `*/${group}/providers/*` };
    const { rule: number } = await this.#control("POST", "/faults", { match, ...rule });
    return () => this.#control("DELETE", `/faults/${number}`);
  }

  /** The emulator's log of all PUTs into one group, the oldest first. */
  async writesInto(group) {
    const { requests } = await this.#control("GET", "/requests?limit=100000");
    return requests.filter((it) => it.method === "PUT" && it.path.includes(`/${group}/providers/`));
  }

  async #control(method, path, body) {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${this.control}${path}`, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }
}

/** The world that all stories of a run share; started by `run.mjs`. */
export const world = new World(JSON.parse(process.env.CONFORMANCE_WORLD));

/** A world of its own for one file of stories. */
export async function start(name) {
  const { ready, stop } = await startProcess(name, process.env.CONFORMANCE_FOLDER);
  return new World(ready, stop);
}

/** All items of a list. */
export async function all(list) {
  const items = [];
  for await (const item of list) items.push(item);
  return items;
}

/** All pages of a list. */
export async function pages(list) {
  const pages = [];
  for await (const page of list.byPage()) pages.push(page);
  return pages;
}

/** Options that add a header; the two generations ask for it in two ways. */
export const withHeader = (name, value) => ({
  requestOptions: { customHeaders: { [name]: value }, headers: { [name]: value } },
});

/** Goes on with a write of a public IP that another client has begun. */
export function resume(network, state, group, name, options) {
  if (armNetwork.restorePoller) {
    const poller = armNetwork.restorePoller(network, state, network.publicIPAddresses.createOrUpdate, options);
    return poller.pollUntilDone();
  }
  const again = { ...options, resumeFrom: state };
  return network.publicIPAddresses.beginCreateOrUpdateAndWait(group, name, shapes.publicIp(), again);
}
