"""What the stories stand on: worlds, clients, and a resource group of its own for each story."""

import os

import pytest

import shapes
from gateways import Gateway, inbound, outbound
from worlds import World


def world_named(name):
    """A world that is started when the first story wants it, and stopped after the last."""

    @pytest.fixture(scope="session")
    def fixture(folder):
        world = World(name, folder)
        # `requests`, on which all of the clients stand, reads it whenever it connects.
        os.environ["REQUESTS_CA_BUNDLE"] = world.ca
        yield world
        world.stop()

    return fixture


world, slow, throttled, short_lived = map(world_named, ["main", "slow", "throttled", "short-lived"])


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where all worlds of this run have their CA."""
    return tmp_path_factory.mktemp("emulator")


@pytest.fixture
def network(world):
    return world.network


@pytest.fixture
def resources(world):
    return world.resources


@pytest.fixture
def raw(world):
    return world.raw


@pytest.fixture
def fresh_name(world):
    return world.fresh_name


@pytest.fixture
def group(world):
    """A resource group that nobody else uses."""
    return world.fresh_group()


@pytest.fixture
def ids(world, group):
    """The id of a resource in this story's group."""
    return lambda kind, name: world.id(group, kind, name)


@pytest.fixture
def gateway(network, group, ids):
    """A service gateway, "gate", in a virtual network of its own."""
    network.virtual_networks.begin_create_or_update(group, "net", shapes.network(nodes="10.0.0.0/24")).result()
    net = ids("virtualNetworks", "net")
    shape = shapes.gateway(net, f"{net}/subnets/nodes")
    network.service_gateways.begin_create_or_update(group, "gate", shape).result()
    return Gateway(network, group, "gate", ids)


@pytest.fixture
def gateway_with_services(gateway):
    """The same with an inbound service "web" and an outbound service "blue"."""
    web = inbound("web", gateway.make_load_balancer("web"))
    blue = outbound("blue", gateway.make_nat_gateway("blue"))
    gateway.update_services("PartialUpdate", web, blue)
    return gateway


def pytest_runtest_logreport(report):
    """Writes what the comparison of all clients reads: outcome, subject, name, and perhaps a reason."""
    path = os.environ.get("CONFORMANCE_RESULTS")
    if path is None or (report.when != "call" and report.outcome == "passed"):
        return
    reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else ""
    file, name = report.nodeid.split("::", 1)
    subject = file.removeprefix("test_").removesuffix(".py")
    with open(path, "a", encoding="utf-8") as results:
        results.write(f"{report.outcome}\t{subject}\t{name}\t{reason}\n")
