"""The credentials of azure-identity, each in its own way, open the door; nothing else does."""

import datetime
import time

import certifi
import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import (
    CertificateCredential,
    ClientSecretCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

import shapes


def opens_the_door(world, credential):
    """A write and a read through a client that has only this credential."""
    name = world.fresh_name("group")
    groups = world.resources_for(credential).resource_groups
    groups.create_or_update(name, {"location": shapes.LOCATION})
    assert list(world.network_for(credential).public_ip_addresses.list(name)) == []


def test_a_client_secret_opens_the_door(world):
    credential = ClientSecretCredential(world.tenant, world.client, world.secret, **world.identity_options)
    opens_the_door(world, credential)


def test_a_wrong_secret_is_refused(world):
    credential = ClientSecretCredential(world.tenant, world.client, "wrong", **world.identity_options)
    with pytest.raises(ClientAuthenticationError) as refusal:
        list(world.network_for(credential).public_ip_addresses.list_all())
    assert "AADSTS7000215" in str(refusal.value)


def test_a_stranger_is_refused(world):
    credential = ClientSecretCredential(world.tenant, "nobody", "anything", **world.identity_options)
    with pytest.raises(ClientAuthenticationError) as refusal:
        list(world.network_for(credential).public_ip_addresses.list_all())
    assert "AADSTS700016" in str(refusal.value)


def test_a_workload_identity_opens_the_door(world, tmp_path):
    token = tmp_path / "token"
    token.write_text(world.federated_token())
    credential = WorkloadIdentityCredential(
        tenant_id=world.tenant,
        client_id=world.client,
        token_file_path=str(token),
        **world.identity_options,
    )
    opens_the_door(world, credential)


def test_a_certificate_opens_the_door(world):
    credential = CertificateCredential(
        world.tenant,
        world.client,
        certificate_data=certificate(),
        **world.identity_options,
    )
    opens_the_door(world, credential)


def certificate():
    """A key and a certificate that was made a minute ago, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "conformance")])
    now = datetime.datetime.now(datetime.timezone.utc)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + signed.public_bytes(serialization.Encoding.PEM)


def test_a_managed_identity_opens_the_door_by_the_identity_endpoint(world, monkeypatch):
    monkeypatch.setenv("IDENTITY_ENDPOINT", world.identity_endpoint)
    monkeypatch.setenv("IDENTITY_HEADER", world.identity_header)
    opens_the_door(world, ManagedIdentityCredential())
    opens_the_door(world, ManagedIdentityCredential(client_id=world.client))


def test_a_managed_identity_opens_the_door_by_the_metadata_service(world, monkeypatch):
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", world.endpoint)
    opens_the_door(world, ManagedIdentityCredential())


def test_a_client_that_does_not_trust_the_ca_does_not_connect(world):
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{world.endpoint}/metadata/endpoints", verify=certifi.where(), timeout=10)


def test_without_a_token_nothing_is_served(raw):
    answer = raw("GET", "/resourcegroups", token=None, api_version="2021-04-01")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "AuthenticationFailed")
    answer = raw("GET", "/resourcegroups", token="nonsense", api_version="2021-04-01")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "InvalidAuthenticationToken")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")


def test_an_expired_token_is_refused_and_the_client_fetches_a_new_one(short_lived):
    world = short_lived
    credential = world.credential()
    network = world.network_for(credential)
    first = credential.get_token(world.scope)
    assert list(network.public_ip_addresses.list_all()) == []
    time.sleep(max(0.0, first.expires_on - time.time()) + 1.1)
    stale = world.raw("GET", "/resourcegroups", token=first.token, api_version="2021-04-01")
    assert (stale.status_code, stale.json()["error"]["code"]) == (401, "ExpiredAuthenticationToken")
    assert list(network.public_ip_addresses.list_all()) == []
    assert credential.get_token(world.scope).token != first.token
