"""Long-running operations: they run, end, fail and are resumed as the client expects."""

import json

import pytest
from azure.core.exceptions import HttpResponseError

import shapes


def test_a_poller_sees_the_operation_run_and_then_succeed(slow):
    """At the latencies of the real thing the first poll finds nothing done yet."""
    group = slow.fresh_group()
    poller = slow.network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
    assert not poller.done()
    assert poller.status() == "InProgress"
    unfinished = slow.network.public_ip_addresses.get(group, "address")
    assert unfinished.provisioning_state == "Updating"
    assert poller.result().provisioning_state == "Succeeded"
    assert poller.status() == "Succeeded"


def test_an_operation_is_resumed_from_its_token(slow):
    """As after a restart: another client goes on with what the first one began."""
    group = slow.fresh_group()
    begun = slow.network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
    token = begun.continuation_token()
    other = slow.network_for(slow.credential())
    resumed = other.public_ip_addresses.begin_create_or_update(
        group, "address", shapes.public_ip(), continuation_token=token
    )
    assert resumed.result().provisioning_state == "Succeeded"
    assert len(slow.writes_into(group)) == 1


def test_an_operation_that_fails_is_the_clients_error(network, group, world):
    with world.fault(group, fault="fails", code="InternalServerError"):
        poller = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
        with pytest.raises(HttpResponseError) as failure:
            poller.result()
    assert failure.value.error.code == "InternalServerError"
    assert network.public_ip_addresses.get(group, "address").provisioning_state == "Failed"
    # And writing it again mends it.
    mended = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert mended.provisioning_state == "Succeeded"


def test_an_operation_that_is_cancelled_is_the_clients_error(network, group, world):
    with world.fault(group, fault="canceled"):
        with pytest.raises(HttpResponseError):
            network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()


def test_a_server_error_is_retried_by_the_client(network, group, world):
    with world.fault(group, fault="unavailable", times=2):
        made = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert made.provisioning_state == "Succeeded"
    assert [it["status"] for it in world.writes_into(group)] == [503, 503, 201]


def test_a_write_whose_answer_is_lost_is_repeated_and_made_once(network, group, world):
    with world.fault(group, fault="noAnswer", times=1):
        made = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert made.provisioning_state == "Succeeded"
    assert [it.name for it in network.public_ip_addresses.list(group)] == ["address"]


VERSIONS = {"2025-05-01": 202, "2025-07-01": 202, "2025-09-01": 200, "2026-01-01": 200, "2026-03-01": 200}


@pytest.mark.parametrize("api_version, status", VERSIONS.items(), ids=VERSIONS)
def test_the_gateways_posts_are_long_running_in_old_api_versions_only(raw, gateway, api_version, status):
    path = f"/resourceGroups/{gateway.group}/providers/Microsoft.Network/serviceGateways/{gateway.name}"
    service = {"name": "blue", "properties": {"serviceType": "Outbound", "loadBalancerBackendPools": []}}
    body = {"action": "PartialUpdate", "serviceRequests": [{"isDelete": False, "service": service}]}
    answer = raw("POST", f"{path}/updateServices", json.dumps(body), api_version=api_version)
    assert answer.status_code == status
    if status == 202:
        assert answer.headers["Azure-AsyncOperation"].startswith("https://127.0.0.1:")
    else:
        assert answer.json() == {"status": "Succeeded"}
        assert list(gateway.services()) == ["blue"]
