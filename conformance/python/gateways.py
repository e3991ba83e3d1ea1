"""A service gateway at the fingertips of a story, whichever version of the client is at work.

In the older client the two POSTs are long-running operations, in the newer one they answer at
once; that is the one difference that the stories need not know.
"""

from azure.mgmt.network import models

import shapes


def inbound(name, *pools, is_delete=False, is_default=False):
    """A service behind load balancers; without a pool it is cleared."""
    properties = dict(
        service_type="Inbound",
        is_default=is_default,
        load_balancer_backend_pools=[models.BackendAddressPool(id=pool) for pool in pools],
    )
    return _request(name, is_delete, properties)


def outbound(name, nat_gateway=None, is_delete=False, is_default=False):
    """A service behind a NAT gateway; with `NULL` it is cleared."""
    properties = dict(
        service_type="Outbound",
        is_default=is_default,
        load_balancer_backend_pools=[],
        public_nat_gateway_id=nat_gateway,
    )
    return _request(name, is_delete, properties)


def _request(name, is_delete, properties):
    service = models.ServiceGatewayService(name=name, **properties)
    return models.ServiceGatewayServiceRequest(is_delete=is_delete, service=service)


def address(ip, *services):
    return models.ServiceGatewayAddress(address=ip, services=list(services))


def location(ip, *addresses, update="PartialUpdate"):
    return models.ServiceGatewayAddressLocation(
        address_location=ip, address_update_action=update, addresses=list(addresses)
    )


class Gateway:
    """One service gateway, and what is made around it."""

    def __init__(self, network, group, name, ids):
        self.network, self.group, self.name, self.ids = network, group, name, ids
        self.id = ids("serviceGateways", name)

    def make_load_balancer(self, name):
        """With its public IP; gives back the id of its pool."""
        self._make_public_ip(name)
        own_id = self.ids("loadBalancers", name)
        shape = shapes.load_balancer(own_id, self.ids("publicIPAddresses", f"{name}-pip"))
        self.network.load_balancers.begin_create_or_update(self.group, name, shape).result()
        return f"{own_id}/backendAddressPools/{name}"

    def make_nat_gateway(self, name):
        """With its public IP; gives back its id."""
        self._make_public_ip(name)
        shape = shapes.nat_gateway(self.id, self.ids("publicIPAddresses", f"{name}-pip"))
        self.network.nat_gateways.begin_create_or_update(self.group, name, shape).result()
        return self.ids("natGateways", name)

    def _make_public_ip(self, name):
        addresses = self.network.public_ip_addresses
        addresses.begin_create_or_update(self.group, f"{name}-pip", shapes.public_ip()).result()

    def update_services(self, action, *requests):
        body = models.ServiceGatewayUpdateServicesRequest(action=action, service_requests=list(requests))
        self._post("update_services", body)

    def update_locations(self, action, *locations):
        body = models.ServiceGatewayUpdateAddressLocationsRequest(action=action, address_locations=list(locations))
        self._post("update_address_locations", body)

    def _post(self, action, body):
        operations = self.network.service_gateways
        if hasattr(operations, f"begin_{action}"):
            poller = getattr(operations, f"begin_{action}")(self.group, self.name, body)
            poller.result()
            assert poller.status() == "Succeeded"
        else:
            assert getattr(operations, action)(self.group, self.name, body).status == "Succeeded"

    def services(self):
        """By name."""
        return {it.name: it for it in self.network.service_gateways.get_services(self.group, self.name)}

    def locations(self):
        """Location to address to the names of its services, in order."""
        listed = self.network.service_gateways.get_address_locations(self.group, self.name)
        return {
            it.address_location: {one.address: sorted(one.services) for one in it.addresses} for it in listed
        }
