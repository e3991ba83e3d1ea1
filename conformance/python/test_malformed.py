"""Requests that no client would send are answered as the resource manager does: 400, with a code.

They go out by hand, with a valid token, over the same connection rules.
"""

import json

import pytest

ADDRESS = "providers/Microsoft.Network/publicIPAddresses/address"


@pytest.mark.parametrize(
    "body, code",
    [
        ("", "InvalidRequestContent"),
        ('{"location": "eastus2", ', "InvalidRequestContent"),
        ("[]", "InvalidRequestContent"),
        (json.dumps({"location": "eastus2", "tags": "blue"}), "InvalidRequestContent"),
        (json.dumps({"location": "eastus2", "properties": {"publicIPAddressVersion": 4}}), "InvalidRequestFormat"),
        (json.dumps({"properties": {}}), "LocationRequired"),
    ],
    ids=["no body", "half a body", "a list", "tags that are text", "a version that is a number", "no location"],
)
def test_a_body_that_is_not_what_it_should_be_is_refused(raw, group, body, code):
    answer = raw("PUT", f"/resourceGroups/{group}/{ADDRESS}", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["message"]
    assert raw("GET", f"/resourceGroups/{group}/{ADDRESS}").status_code == 404


def test_a_request_without_api_version_is_refused(raw, group):
    answer = raw("GET", f"/resourceGroups/{group}/{ADDRESS}", api_version=None)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "MissingApiVersionParameter")


def test_an_api_version_that_does_not_exist_is_refused(raw, group):
    answer = raw("GET", f"/resourceGroups/{group}/{ADDRESS}", api_version="1999-01-01")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in ("InvalidApiVersionParameter", "NoRegisteredProviderFound")


def test_a_kind_that_is_not_emulated_says_so(raw, group):
    answer = raw("GET", f"/resourceGroups/{group}/providers/Microsoft.Network/azureFirewalls/wall")
    assert 400 <= answer.status_code < 500
    assert "azureFirewalls" in answer.json()["error"]["message"]


def test_a_method_that_makes_no_sense_is_refused(raw, group):
    answer = raw("POST", f"/resourceGroups/{group}/{ADDRESS}", "{}")
    assert answer.status_code in (404, 405)
    assert answer.json()["error"]["code"]


def test_gateway_updates_with_broken_bodies_change_nothing(raw, gateway_with_services):
    gateway = gateway_with_services
    path = f"/resourceGroups/{gateway.group}/providers/Microsoft.Network/serviceGateways/{gateway.name}"
    broken = {"addressLocation": "not an address", "addresses": []}
    for action, body in [
        ("updateServices", {"action": "Sideways", "serviceRequests": []}),
        ("updateServices", {"action": "PartialUpdate", "serviceRequests": {}}),
        ("updateAddressLocations", {"action": "PartialUpdate", "addressLocations": [broken]}),
    ]:
        answer = raw("POST", f"{path}/{action}", json.dumps(body))
        assert (answer.status_code, bool(answer.json()["error"]["code"])) == (400, True), (action, body)
    assert sorted(gateway.services()) == ["blue", "web"]
    assert gateway.locations() == {}
