"""The gateway's own two lists: which services it knows, and which address lives where."""

import shapes
from gateways import Gateway, address, inbound, location, outbound


def test_an_inbound_service_is_registered_cleared_and_unregistered(gateway: Gateway):
    pool = gateway.make_load_balancer("web")
    gateway.update_services("PartialUpdate", inbound("web", pool))
    (web,) = gateway.services().values()
    assert (web.name, web.service_type, bool(web.is_default)) == ("web", "Inbound", False)
    assert [it.id for it in web.load_balancer_backend_pools] == [pool]

    gateway.update_services("PartialUpdate", inbound("web"))
    assert not gateway.services()["web"].load_balancer_backend_pools
    gateway.network.load_balancers.begin_delete(gateway.group, "web").result()
    gateway.update_services("PartialUpdate", inbound("web", is_delete=True))
    assert gateway.services() == {}


def test_an_outbound_service_is_registered_cleared_and_unregistered(gateway: Gateway):
    nat = gateway.make_nat_gateway("blue")
    gateway.update_services("PartialUpdate", outbound("blue", nat, is_default=True))
    (blue,) = gateway.services().values()
    assert (blue.service_type, blue.is_default, blue.public_nat_gateway_id) == ("Outbound", True, nat)

    gateway.update_services("PartialUpdate", outbound("blue", shapes.NULL))
    assert gateway.services()["blue"].public_nat_gateway_id is None
    gateway.update_services("PartialUpdate", outbound("blue", is_delete=True))
    assert gateway.services() == {}
    gateway.network.nat_gateways.begin_delete(gateway.group, "blue").result()


def test_several_services_ride_in_one_request(gateway: Gateway):
    web = inbound("web", gateway.make_load_balancer("web"))
    gateway.update_services("PartialUpdate", web, outbound("blue", gateway.make_nat_gateway("blue")))
    assert sorted(gateway.services()) == ["blue", "web"]


def test_a_full_update_of_services_replaces_all_of_them(gateway: Gateway):
    old, new = gateway.make_load_balancer("old"), gateway.make_load_balancer("new")
    gateway.update_services("PartialUpdate", inbound("old", old))
    gateway.update_services("FullUpdate", inbound("new", new))
    assert list(gateway.services()) == ["new"]


def test_addresses_are_bound_changed_and_unbound_one_by_one(gateway_with_services: Gateway):
    gateway = gateway_with_services
    first = location("10.0.0.10", address("10.1.0.1", "web", "blue"), address("10.1.0.2", "web"))
    gateway.update_locations("PartialUpdate", first, location("10.0.0.11", address("10.1.0.3", "web")))
    assert gateway.locations() == {
        "10.0.0.10": {"10.1.0.1": ["blue", "web"], "10.1.0.2": ["web"]},
        "10.0.0.11": {"10.1.0.3": ["web"]},
    }
    change = location("10.0.0.10", address("10.1.0.1", "blue"), address("10.1.0.2"))
    gateway.update_locations("PartialUpdate", change)
    assert gateway.locations() == {"10.0.0.10": {"10.1.0.1": ["blue"]}, "10.0.0.11": {"10.1.0.3": ["web"]}}


def test_a_full_update_of_one_location_replaces_its_addresses(gateway_with_services: Gateway):
    gateway = gateway_with_services
    first = location("10.0.0.10", address("10.1.0.1", "web"), address("10.1.0.2", "web"))
    gateway.update_locations("PartialUpdate", first, location("10.0.0.11", address("10.1.0.3", "web")))
    full = location("10.0.0.10", address("10.1.0.9", "web"), update="FullUpdate")
    gateway.update_locations("PartialUpdate", full)
    assert gateway.locations() == {"10.0.0.10": {"10.1.0.9": ["web"]}, "10.0.0.11": {"10.1.0.3": ["web"]}}


def test_a_full_update_of_locations_replaces_all_of_them(gateway_with_services: Gateway):
    gateway = gateway_with_services
    gateway.update_locations("PartialUpdate", location("10.0.0.10", address("10.1.0.1", "web")))
    gateway.update_locations("FullUpdate", location("10.0.0.12", address("10.1.0.4", "blue"), update="FullUpdate"))
    assert gateway.locations() == {"10.0.0.12": {"10.1.0.4": ["blue"]}}


def test_a_location_without_addresses_is_removed(gateway_with_services: Gateway):
    gateway = gateway_with_services
    gateway.update_locations("PartialUpdate", location("10.0.0.10", address("10.1.0.1", "web")))
    gateway.update_locations("PartialUpdate", location("10.0.0.10"))
    assert gateway.locations() == {}


def test_ipv6_addresses_live_on_ipv6_locations(gateway_with_services: Gateway):
    gateway = gateway_with_services
    gateway.update_locations("PartialUpdate", location("fd00::10", address("fd00:1::1", "web")))
    assert gateway.locations() == {"fd00::10": {"fd00:1::1": ["web"]}}


def test_services_and_locations_come_page_by_page(gateway_with_services: Gateway, world):
    gateway = gateway_with_services
    number = world.page_size + 1
    gateway.update_services("PartialUpdate", *[outbound(f"egress-{at}") for at in range(number)])
    nodes = [location(f"10.0.1.{at}", address(f"10.1.1.{at}", "web")) for at in range(1, number + 1)]
    gateway.update_locations("PartialUpdate", *nodes)
    operations = gateway.network.service_gateways
    pages = [list(page) for page in operations.get_services(gateway.group, gateway.name).by_page()]
    assert [len(page) for page in pages] == [world.page_size, 3]
    pages = [list(page) for page in operations.get_address_locations(gateway.group, gateway.name).by_page()]
    assert [len(page) for page in pages] == [world.page_size, 1]


def test_an_address_that_moves_is_in_one_place_at_a_time(gateway_with_services: Gateway):
    gateway = gateway_with_services
    gateway.update_locations("PartialUpdate", location("10.0.0.10", address("10.1.0.1", "web")))
    away = location("10.0.0.10", address("10.1.0.1"))
    there = location("10.0.0.11", address("10.1.0.1", "web"))
    gateway.update_locations("PartialUpdate", away, there)
    assert gateway.locations() == {"10.0.0.11": {"10.1.0.1": ["web"]}}
