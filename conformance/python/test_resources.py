"""Every kind of resource is created, read, listed, changed and deleted."""

from dataclasses import dataclass
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.mgmt.network import models

import shapes


@dataclass
class Kind:
    """One kind of resource as the client offers it."""

    operations: Any
    group: str

    def create(self, name, parameters):
        return self.operations.begin_create_or_update(self.group, name, parameters).result()

    def names_in_group(self):
        return [it.name for it in self.operations.list(self.group)]

    def ids_in_subscription(self):
        return [it.id for it in self.operations.list_all()]

    def is_created_read_listed_tagged_and_replaced(self, name, parameters):
        """The life of one resource up to its deletion; gives back what it was in the end."""
        made = self.create(name, parameters)
        assert (made.name, made.location) == (name, shapes.LOCATION)
        assert made.provisioning_state == "Succeeded"
        read = self.operations.get(self.group, name)
        assert (read.id, read.etag) == (made.id, made.etag)
        assert name in self.names_in_group()
        assert made.id in self.ids_in_subscription()

        tagged = self.operations.update_tags(self.group, name, models.TagsObject(tags={"colour": "blue"}))
        assert tagged.tags == {"colour": "blue"}
        assert tagged.etag != made.etag

        parameters.tags = {"colour": "green", "size": "small"}
        replaced = self.create(name, parameters)
        assert replaced.tags == {"colour": "green", "size": "small"}
        assert replaced.id == made.id
        return replaced

    def is_deleted(self, name):
        """Gone, from the lists too; and deleting it once more does no harm."""
        self.operations.begin_delete(self.group, name).result()
        with pytest.raises(ResourceNotFoundError) as gone:
            self.operations.get(self.group, name)
        assert gone.value.error.code == "ResourceNotFound"
        assert name not in self.names_in_group()
        self.operations.begin_delete(self.group, name).result()


def test_a_resource_group_lives_and_dies(resources, fresh_name):
    groups = resources.resource_groups
    name = fresh_name("group")
    assert not groups.check_existence(name)
    made = groups.create_or_update(name, {"location": shapes.LOCATION, "tags": {"colour": "blue"}})
    assert (made.name, made.tags) == (name, {"colour": "blue"})
    assert made.properties.provisioning_state == "Succeeded"
    assert groups.check_existence(name.upper())
    assert groups.get(name).id == made.id
    assert name in [it.name for it in groups.list()]
    assert groups.update(name, {"tags": {"colour": "green"}}).tags == {"colour": "green"}
    groups.begin_delete(name).result()
    with pytest.raises(ResourceNotFoundError) as gone:
        groups.get(name)
    assert gone.value.error.code == "ResourceGroupNotFound"


def test_what_is_in_a_resource_group_goes_with_it(resources, network, group):
    network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    resources.resource_groups.begin_delete(group).result()
    with pytest.raises(ResourceNotFoundError) as gone:
        network.public_ip_addresses.get(group, "address")
    assert gone.value.error.code == "ResourceGroupNotFound"


def test_a_virtual_network_lives_and_dies_with_its_subnets(network, group):
    networks = Kind(network.virtual_networks, group)
    shape = shapes.network(nodes="10.0.0.0/24", pods="10.0.1.0/24")
    made = networks.is_created_read_listed_tagged_and_replaced("net", shape)
    assert made.address_space.address_prefixes == ["10.0.0.0/16"]
    assert {it.name: it.address_prefix for it in made.subnets} == {"nodes": "10.0.0.0/24", "pods": "10.0.1.0/24"}
    assert [it.name for it in network.subnets.list(group, "net")] == ["nodes", "pods"]
    networks.is_deleted("net")


def test_a_subnet_lives_and_dies(network, group):
    network.virtual_networks.begin_create_or_update(group, "net", shapes.network()).result()
    subnets = network.subnets
    shape = models.Subnet(address_prefix="10.0.7.0/24")
    made = subnets.begin_create_or_update(group, "net", "nodes", shape).result()
    assert (made.name, made.address_prefix, made.provisioning_state) == ("nodes", "10.0.7.0/24", "Succeeded")
    read = subnets.get(group, "net", "nodes")
    assert (read.id, read.etag) == (made.id, made.etag)
    assert [it.name for it in subnets.list(group, "net")] == ["nodes"]

    read.address_prefix = "10.0.8.0/24"
    changed = subnets.begin_create_or_update(group, "net", "nodes", read).result()
    assert (changed.address_prefix, changed.etag != made.etag) == ("10.0.8.0/24", True)
    assert network.virtual_networks.get(group, "net").subnets[0].address_prefix == "10.0.8.0/24"

    subnets.begin_delete(group, "net", "nodes").result()
    with pytest.raises(ResourceNotFoundError) as gone:
        subnets.get(group, "net", "nodes")
    assert gone.value.error.code == "NotFound"
    assert list(subnets.list(group, "net")) == []


@pytest.mark.parametrize("family, beginning", [("IPv4", "198.1"), ("IPv6", "2001:db8:")], ids=["ipv4", "ipv6"])
def test_a_public_ip_lives_and_dies(network, group, family, beginning):
    addresses = Kind(network.public_ip_addresses, group)
    made = addresses.is_created_read_listed_tagged_and_replaced("address", shapes.public_ip(family))
    assert (made.sku.name, made.public_ip_address_version) == ("StandardV2", family)
    assert made.ip_address.startswith(beginning)
    other = addresses.create("other", shapes.public_ip(family))
    assert other.ip_address != made.ip_address
    addresses.is_deleted("address")


def test_a_load_balancer_lives_and_dies(network, group, ids):
    network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    balancers = Kind(network.load_balancers, group)
    shape = shapes.load_balancer(ids("loadBalancers", "web"), ids("publicIPAddresses", "address"), ports=(80, 443))
    made = balancers.is_created_read_listed_tagged_and_replaced("web", shape)
    assert (made.sku.name, made.scope) == ("Service", "Public")
    assert made.frontend_ip_configurations[0].public_ip_address.id == ids("publicIPAddresses", "address")
    assert made.backend_address_pools[0].id == ids("loadBalancers", "web") + "/backendAddressPools/web"
    assert [(it.name, it.backend_port) for it in made.load_balancing_rules] == [
        ("rule-tcp-80", 8080),
        ("rule-tcp-443", 8443),
    ]
    user = network.public_ip_addresses.get(group, "address").ip_configuration
    assert user.id == made.frontend_ip_configurations[0].id

    # A PUT replaces: a rule goes by not being named.
    shape.load_balancing_rules = shape.load_balancing_rules[1:]
    assert [it.name for it in balancers.create("web", shape).load_balancing_rules] == ["rule-tcp-443"]
    balancers.is_deleted("web")
    assert network.public_ip_addresses.get(group, "address").ip_configuration is None


def test_a_nat_gateway_lives_and_dies(network, group, ids, gateway):
    network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    gateways = Kind(network.nat_gateways, group)
    shape = shapes.nat_gateway(gateway.id, ids("publicIPAddresses", "address"))
    made = gateways.is_created_read_listed_tagged_and_replaced("blue", shape)
    assert (made.sku.name, made.service_gateway.id) == ("StandardV2", gateway.id)
    assert [it.id for it in made.public_ip_addresses] == [ids("publicIPAddresses", "address")]
    network.public_ip_addresses.begin_create_or_update(group, "address-v6", shapes.public_ip("IPv6")).result()
    shape.public_ip_addresses_v6 = [models.SubResource(id=ids("publicIPAddresses", "address-v6"))]
    both = gateways.create("blue", shape)
    assert [it.id for it in both.public_ip_addresses_v6] == [ids("publicIPAddresses", "address-v6")]
    # A literal null takes it out of its service gateway.
    detached = gateways.create("blue", shapes.nat_gateway(None, ids("publicIPAddresses", "address")))
    assert detached.service_gateway is None
    gateways.is_deleted("blue")


def test_a_service_gateway_lives_and_dies(network, group, ids):
    network.virtual_networks.begin_create_or_update(group, "net", shapes.network(nodes="10.0.0.0/24")).result()
    net, subnet = ids("virtualNetworks", "net"), ids("virtualNetworks", "net") + "/subnets/nodes"
    gateways = Kind(network.service_gateways, group)
    made = gateways.is_created_read_listed_tagged_and_replaced("gate", shapes.gateway(net, subnet))
    assert (made.sku.name, made.sku.tier) == ("Standard", "Regional")
    assert made.virtual_network.id == net
    assert made.route_target_address.subnet.id == subnet
    assert made.route_target_address.private_ip_address == "10.0.0.4"
    gateways.is_deleted("gate")


def test_a_subnet_is_attached_to_a_service_gateway_and_let_go(network, group, gateway):
    subnet = network.subnets.get(group, "net", "nodes")
    put = network.subnets.begin_create_or_update
    subnet.service_gateway = models.SubResource(id=gateway.id)
    attached = put(group, "net", "nodes", subnet, headers={"If-Match": subnet.etag}).result()
    assert attached.service_gateway.id == gateway.id
    subnet.service_gateway = shapes.NULL
    assert put(group, "net", "nodes", subnet).result().service_gateway is None


def test_ids_are_read_in_any_case(network, group):
    made = network.public_ip_addresses.begin_create_or_update(group, "Address", shapes.public_ip()).result()
    read = network.public_ip_addresses.get(group.upper(), "aDDRESS")
    assert (read.etag, read.name) == (made.etag, "Address")


def test_lists_come_page_by_page(network, group, world):
    names = [f"address-{number}" for number in range(2 * world.page_size + 1)]
    begun = [network.public_ip_addresses.begin_create_or_update(group, it, shapes.public_ip()) for it in names]
    for poller in begun:
        poller.result()
    pages = [[it.name for it in page] for page in network.public_ip_addresses.list(group).by_page()]
    assert [len(page) for page in pages] == [world.page_size, world.page_size, 1]
    assert sorted(sum(pages, [])) == sorted(names)


def test_the_quota_is_told(network, group):
    def public_ips():
        usages = {it.name.value: it for it in network.usages.list(shapes.LOCATION)}
        return usages["PublicIPAddresses"]

    before = public_ips()
    network.public_ip_addresses.begin_create_or_update(group, "address", shapes.public_ip()).result()
    after = public_ips()
    assert after.current_value >= before.current_value + 1
    assert (after.limit, after.unit) == (before.limit, "Count")
    assert after.limit > after.current_value
