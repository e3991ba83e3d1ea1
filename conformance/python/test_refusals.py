"""What Azure refuses is refused, with Azure's own code."""

from contextlib import contextmanager

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.mgmt.network import models

import shapes
from gateways import Gateway, address, inbound, location, outbound


@contextmanager
def refused(status, code):
    """What is done inside is refused, at once or at the end of its operation."""
    with pytest.raises(HttpResponseError) as refusal:
        yield
    assert (refusal.value.status_code, refusal.value.error.code) == (status, code)
    assert refusal.value.error.message


def test_a_public_ip_in_use_cannot_be_deleted(gateway: Gateway):
    gateway.make_load_balancer("web")
    with refused(400, "PublicIPAddressCannotBeDeleted"):
        gateway.network.public_ip_addresses.begin_delete(gateway.group, "web-pip").result()


def test_a_load_balancer_whose_pool_is_registered_cannot_be_deleted(gateway: Gateway):
    gateway.update_services("PartialUpdate", inbound("web", gateway.make_load_balancer("web")))
    with pytest.raises(HttpResponseError) as refusal:
        gateway.network.load_balancers.begin_delete(gateway.group, "web").result()
    assert refusal.value.error.code.startswith("InUse")


def test_a_nat_gateway_that_is_registered_cannot_be_deleted(gateway: Gateway):
    gateway.update_services("PartialUpdate", outbound("blue", gateway.make_nat_gateway("blue")))
    with pytest.raises(HttpResponseError) as refusal:
        gateway.network.nat_gateways.begin_delete(gateway.group, "blue").result()
    assert refusal.value.error.code.startswith("InUse")


def test_a_service_with_mapped_addresses_cannot_be_unregistered(gateway_with_services: Gateway):
    gateway = gateway_with_services
    gateway.update_locations("PartialUpdate", location("10.0.0.10", address("10.1.0.1", "web")))
    with refused(400, "ServiceWithOverlayMappingsCannotBeDeleted"):
        gateway.update_services("PartialUpdate", inbound("web", is_delete=True))
    assert "web" in gateway.services()


def test_a_location_may_be_named_only_once(gateway_with_services: Gateway):
    twins = [location("10.0.0.10", address(ip, "web")) for ip in ("10.1.0.1", "10.1.0.2")]
    with refused(400, "DuplicateLocationsInRequest"):
        gateway_with_services.update_locations("PartialUpdate", *twins)
    assert gateway_with_services.locations() == {}


def test_locations_and_addresses_are_of_one_family(gateway_with_services: Gateway):
    with refused(400, "IPv4LocationCannotContainIPv6Addresses"):
        gateway_with_services.update_locations("PartialUpdate", location("10.0.0.10", address("fd00:1::1", "web")))
    with refused(400, "IPv6LocationCannotContainIPv4Addresses"):
        gateway_with_services.update_locations("PartialUpdate", location("fd00::10", address("10.1.0.1", "web")))


def test_two_services_cannot_both_be_the_default(gateway: Gateway):
    gateway.update_services("PartialUpdate", outbound("blue", is_default=True))
    with refused(400, "MultipleDefaultServicesNotAllowedInServiceGateway"):
        gateway.update_services("PartialUpdate", outbound("green", is_default=True))
    assert list(gateway.services()) == ["blue"]


def test_rules_that_share_backend_port_protocol_and_pool_are_refused(gateway: Gateway):
    gateway.make_load_balancer("web")
    shape = shapes.load_balancer(
        gateway.ids("loadBalancers", "web"), gateway.ids("publicIPAddresses", "web-pip"), ports=(80, 81)
    )
    shape.load_balancing_rules[1].backend_port = shape.load_balancing_rules[0].backend_port
    with refused(400, "RulesUseSameBackendPortProtocolAndPool"):
        gateway.network.load_balancers.begin_create_or_update(gateway.group, "web", shape).result()


def test_a_reference_to_what_is_not_there_is_refused(network, group, ids):
    shape = shapes.load_balancer(ids("loadBalancers", "web"), ids("publicIPAddresses", "nobody"))
    with refused(400, "InvalidResourceReference"):
        network.load_balancers.begin_create_or_update(group, "web", shape).result()


def test_an_unknown_group_is_not_found(network, fresh_name):
    with refused(404, "ResourceGroupNotFound"):
        network.public_ip_addresses.begin_create_or_update(fresh_name("nowhere"), "address", shapes.public_ip())
    with refused(404, "ResourceGroupNotFound"):
        list(network.public_ip_addresses.list(fresh_name("nowhere")))


def test_an_unknown_parent_is_not_found(network, group):
    shape = models.Subnet(address_prefix="10.0.0.0/24")
    with refused(404, "ParentResourceNotFound"):
        network.subnets.begin_create_or_update(group, "nowhere", "nodes", shape)
    with refused(404, "ResourceNotFound"):
        list(network.service_gateways.get_services(group, "nowhere"))


def test_an_unknown_resource_is_not_found(network, group):
    with pytest.raises(ResourceNotFoundError) as missing:
        network.public_ip_addresses.get(group, "nobody")
    assert missing.value.error.code == "ResourceNotFound"
    assert "nobody" in missing.value.error.message and group in missing.value.error.message


def test_a_stale_etag_is_refused_and_changes_nothing(network, group):
    network.virtual_networks.begin_create_or_update(group, "net", shapes.network(nodes="10.0.0.0/24")).result()
    subnet = network.subnets.get(group, "net", "nodes")
    stale = subnet.etag
    subnet.address_prefix = "10.0.1.0/24"
    network.subnets.begin_create_or_update(group, "net", "nodes", subnet, headers={"If-Match": stale}).result()
    subnet.address_prefix = "10.0.2.0/24"
    with refused(412, "PreconditionFailed"):
        network.subnets.begin_create_or_update(group, "net", "nodes", subnet, headers={"If-Match": stale}).result()
    assert network.subnets.get(group, "net", "nodes").address_prefix == "10.0.1.0/24"


def test_a_name_that_azure_does_not_allow_is_refused(network, group):
    with refused(400, "InvalidResourceName"):
        network.public_ip_addresses.begin_create_or_update(group, "-no!", shapes.public_ip())


def test_a_subnet_outside_its_network_is_refused(network, group):
    network.virtual_networks.begin_create_or_update(group, "net", shapes.network()).result()
    with refused(400, "NetcfgInvalidSubnet"):
        outside = models.Subnet(address_prefix="192.168.0.0/24")
        network.subnets.begin_create_or_update(group, "net", "nodes", outside).result()


def test_a_network_in_use_cannot_be_deleted(gateway: Gateway):
    with pytest.raises(HttpResponseError) as refusal:
        gateway.network.virtual_networks.begin_delete(gateway.group, "net").result()
    assert refusal.value.error.code.startswith("InUse")
