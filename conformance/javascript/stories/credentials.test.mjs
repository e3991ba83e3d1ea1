// The credentials of @azure/identity, each in its own way, open the door; nothing else does.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { rootCertificates } from "node:tls";

import { selfSigned } from "../certificates.mjs";
import * as shapes from "../shapes.mjs";
import { all, identity, start, world } from "../worlds.mjs";

const folder = mkdtempSync(join(tmpdir(), "conformance-"));
after(() => rmSync(folder, { recursive: true }));

/** A write and a read through a client that has only this credential. */
async function opensTheDoor(credential) {
  const name = world.freshName("group");
  await world.resourcesFor(credential).resourceGroups.createOrUpdate(name, { location: shapes.LOCATION });
  assert.deepEqual(await all(world.networkFor(credential).publicIPAddresses.list(name)), []);
}

const reads = (credential) => all(world.networkFor(credential).publicIPAddresses.listAll());

test("a client secret opens the door", async () => {
  await opensTheDoor(
    new identity.ClientSecretCredential(world.tenant, world.client, world.secret, world.identityOptions),
  );
});

test("a wrong secret is refused", async () => {
  const credential = new identity.ClientSecretCredential(
    world.tenant, world.client, "wrong", world.identityOptions,
  );
  await assert.rejects(reads(credential), { name: "AuthenticationRequiredError" });
  await assert.rejects(credential.getToken(world.scope), /AADSTS7000215/);
});

test("a stranger is refused", async () => {
  const credential = new identity.ClientSecretCredential(
    world.tenant, "nobody", "anything", world.identityOptions,
  );
  await assert.rejects(credential.getToken(world.scope), /AADSTS700016/);
});

test("a workload identity opens the door", async () => {
  const tokenFilePath = join(folder, "token");
  writeFileSync(tokenFilePath, world.federatedToken());
  await opensTheDoor(
    new identity.WorkloadIdentityCredential({
      tenantId: world.tenant,
      clientId: world.client,
      tokenFilePath,
      ...world.identityOptions,
    }),
  );
});

test("a certificate opens the door", async () => {
  const certificatePath = join(folder, "certificate.pem");
  writeFileSync(certificatePath, selfSigned());
  await opensTheDoor(
    new identity.ClientCertificateCredential(
      world.tenant, world.client, { certificatePath }, world.identityOptions,
    ),
  );
});

test("a managed identity opens the door by the identity endpoint", async () => {
  process.env.IDENTITY_ENDPOINT = world.identityEndpoint;
  process.env.IDENTITY_HEADER = world.identityHeader;
  try {
    await opensTheDoor(new identity.ManagedIdentityCredential());
    await opensTheDoor(new identity.ManagedIdentityCredential({ clientId: world.client }));
  } finally {
    delete process.env.IDENTITY_ENDPOINT;
    delete process.env.IDENTITY_HEADER;
  }
});

test("a managed identity opens the door by the metadata service", async () => {
  process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST = world.endpoint;
  try {
    await opensTheDoor(new identity.ManagedIdentityCredential());
  } finally {
    delete process.env.AZURE_POD_IDENTITY_AUTHORITY_HOST;
  }
});

test("a client that does not trust the ca does not connect", async () => {
  const answer = new Promise((done, failed) => {
    get(`${world.endpoint}/metadata/endpoints`, { ca: rootCertificates }, done).on("error", failed);
  });
  await assert.rejects(answer, { code: /CERT|ISSUER|SIGNATURE/ });
});

test("without a token nothing is served", async () => {
  const asked = (token) => world.raw("GET", "/resourcegroups", { token, apiVersion: "2021-04-01" });
  const none = await asked(null);
  assert.deepEqual([none.status, none.json.error.code], [401, "AuthenticationFailed"]);
  const nonsense = await asked("nonsense");
  assert.deepEqual([nonsense.status, nonsense.json.error.code], [401, "InvalidAuthenticationToken"]);
  assert.match(nonsense.headers.get("www-authenticate"), /^Bearer /);
});

test("an expired token is refused and the client fetches a new one", async () => {
  const shortLived = await start("short-lived");
  try {
    const credential = shortLived.credential();
    const network = shortLived.networkFor(credential);
    const first = await credential.getToken(shortLived.scope);
    assert.deepEqual(await all(network.publicIPAddresses.listAll()), []);
    await new Promise((done) => setTimeout(done, first.expiresOnTimestamp - Date.now() + 1100));
    const options = { token: first.token, apiVersion: "2021-04-01" };
    const stale = await shortLived.raw("GET", "/resourcegroups", options);
    assert.deepEqual([stale.status, stale.json.error.code], [401, "ExpiredAuthenticationToken"]);
    assert.deepEqual(await all(network.publicIPAddresses.listAll()), []);
    assert.notEqual((await credential.getToken(shortLived.scope)).token, first.token);
  } finally {
    await shortLived.stop();
  }
});
