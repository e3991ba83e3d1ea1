"""An emulator process, and the official clients that talk to it.

The clients are unmodified: they are told an address, an authority and a CA, as they would be for any
cloud that is not the public one.
"""

import base64
import json
import os
import subprocess
import time
import uuid
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import requests
from azure.identity import ClientSecretCredential
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

import shapes

WORLDS = json.loads((Path(__file__).parent.parent / "worlds.json").read_text())

# Who may come in: the emulator is told, so that a wrong secret is one.
CLIENT, SECRET = "11111111-2222-3333-4444-555555555555", "a secret for the stories"

# The default of 30 s between two polls is for operations of minutes.
POLLING_SECONDS = 0.05


class World:
    """One emulator, from its start to its stop."""

    def __init__(self, name, folder):
        binary = os.environ.get("SLUICE_BINARY")
        assert binary, "SLUICE_BINARY does not say which binary has the emulator"
        words = ["emulator", "--listen", "127.0.0.1:0", "--output", "json", "--log", "warn"]
        # In one folder, so that all worlds of a run have the same CA.
        words += ["--client", f"{CLIENT}={SECRET}", "--dir", str(folder), *WORLDS[name]]
        self.process = subprocess.Popen([binary, *words], stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        assert first, f"the emulator ended with {self.process.wait()} before it was ready"
        ready = json.loads(first)
        self.endpoint = self.authority = ready["url"]
        self.control = ready["controlUrl"].rstrip("/")
        self.scope = f"{self.endpoint}/.default"
        self.ca = ready["caPath"]
        self.tenant, self.subscription = ready["tenantId"], ready["subscriptionId"]
        self.client, self.secret = CLIENT, SECRET
        self.identity_endpoint, self.identity_header = ready["identityEndpoint"], ready["identityHeader"]
        flags = dict(zip(WORLDS[name], WORLDS[name][1:]))
        self.page_size = int(flags.get("--page-size", 100))

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0, "the emulator did not stop as it was told"

    # The clients.

    @cached_property
    def network(self):
        return self.network_for(self.credential())

    @cached_property
    def resources(self):
        return self.resources_for(self.credential())

    def credential(self):
        return ClientSecretCredential(self.tenant, self.client, self.secret, **self.identity_options)

    @property
    def identity_options(self):
        return {"authority": self.authority, "disable_instance_discovery": True}

    def network_for(self, credential):
        return self._client(NetworkManagementClient, credential)

    def resources_for(self, credential):
        return self._client(ResourceManagementClient, credential)

    def _client(self, kind, credential):
        return kind(
            credential,
            self.subscription,
            base_url=self.endpoint,
            credential_scopes=[self.scope],
            polling_interval=POLLING_SECONDS,
        )

    def federated_token(self):
        """What Kubernetes would have put into the file of a workload identity."""
        claims = {
            "iss": "https://kubernetes.example",
            "sub": "system:serviceaccount:shop:sluice",
            "aud": ["api://AzureADTokenExchange"],
            "exp": int(time.time()) + 3600,
        }
        parts = [{"alg": "RS256", "typ": "JWT"}, claims]
        encoded = [base64.urlsafe_b64encode(json.dumps(it).encode()).rstrip(b"=").decode() for it in parts]
        return ".".join([*encoded, base64.urlsafe_b64encode(b"unverified").rstrip(b"=").decode()])

    # What stories need around the clients.

    def fresh_name(self, word):
        return f"{word}-{uuid.uuid4().hex[:8]}"

    def fresh_group(self):
        name = self.fresh_name("group")
        self.resources.resource_groups.create_or_update(name, {"location": shapes.LOCATION})
        return name

    def id(self, group, kind, name):
        prefix = f"/subscriptions/{self.subscription}/resourceGroups/{group}/providers/Microsoft.Network"
        return f"{prefix}/{kind}/{name}"

    def raw(self, method, path, body=None, api_version="2025-05-01", token=...):
        """A request by hand; with a valid token unless told otherwise."""
        if token is ...:
            token = self.credential().get_token(self.scope).token
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return requests.request(
            method,
            f"{self.endpoint}/subscriptions/{self.subscription}{path}",
            params={"api-version": api_version} if api_version else None,
            data=body,
            headers=headers,
            timeout=30,
        )

    # The emulator's own side of it.

    @contextmanager
    def fault(self, group, **rule):
        """Something goes wrong with the writes into one group, as long as the block lasts."""
        rule["match"] = {"method": "PUT", "path": f"*/{group}/providers/*"}
        answer = requests.post(f"{self.control}/faults", json=rule, timeout=10)
        answer.raise_for_status()
        try:
            yield
        finally:
            requests.delete(f"{self.control}/faults/{answer.json()['rule']}", timeout=10).raise_for_status()

    def writes_into(self, group):
        """The emulator's log of all PUTs into one group, the oldest first."""
        answer = requests.get(f"{self.control}/requests?limit=100000", timeout=10)
        answer.raise_for_status()
        log = answer.json()["requests"]
        return [it for it in log if it["method"] == "PUT" and f"/{group}/providers/" in it["path"]]
