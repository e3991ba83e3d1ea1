"""Long-running operations: they run, end, fail and are resumed as the client expects."""

import pytest
from azure.core.exceptions import HttpResponseError

import shapes


def test_a_poller_sees_the_operation_run_and_then_succeed(slow, fresh_group):
    """At the latencies of the real thing the first poll finds nothing done yet."""
    group = fresh_group(slow)
    poller = slow.client.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
    assert not poller.done()
    assert poller.status() == "InProgress"
    unfinished = slow.client.public_ip_addresses.get(group, "address")
    assert unfinished.provisioning_state == "Updating"
    assert poller.result().provisioning_state == "Succeeded"
    assert poller.status() == "Succeeded"


def test_an_operation_is_resumed_from_its_token(slow, fresh_group):
    """As after a restart: another client goes on with what the first one began."""
    group = fresh_group(slow)
    begun = slow.client.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
    token = begun.continuation_token()
    other = slow.network(slow.credential())
    resumed = other.public_ip_addresses.begin_create_or_update(
        group, "address", shapes.public_ip(), continuation_token=token
    )
    assert resumed.result().provisioning_state == "Succeeded"
    puts = [it for it in slow.requests() if it["method"] == "PUT" and it["path"].endswith(f"{group}/providers/Microsoft.Network/publicIPAddresses/address")]
    assert len(puts) == 1


def test_an_operation_that_fails_is_the_clients_error(network, group, world):
    with world.fault(group, "publicIPAddresses", operation_fails="InternalServerError"):
        poller = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip())
        with pytest.raises(HttpResponseError) as failure:
            poller.result()
    assert failure.value.error.code == "InternalServerError"
    assert network.public_ip_addresses.get(group, "address").provisioning_state == "Failed"
    # And writing it again mends it.
    mended = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert mended.provisioning_state == "Succeeded"


def test_an_operation_that_is_cancelled_is_the_clients_error(network, group, world):
    with world.fault(group, "publicIPAddresses", operation_canceled=True):
        with pytest.raises(HttpResponseError):
            network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()


def test_a_server_error_is_retried_by_the_client(network, group, world):
    with world.fault(group, "publicIPAddresses", status=503, code="ServiceUnavailable", times=2):
        made = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert made.provisioning_state == "Succeeded"
    answers = [it["status"] for it in world.requests() if f"/{group}/" in it["path"] and it["method"] == "PUT"]
    assert answers == [503, 503, 201]


def test_a_write_whose_answer_is_lost_is_repeated_and_made_once(network, group, world):
    with world.fault(group, "publicIPAddresses", applied_but_lost=True, times=1):
        made = network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    assert made.provisioning_state == "Succeeded"
    assert [it.name for it in network.public_ip_addresses.list(group)] == ["address"]
