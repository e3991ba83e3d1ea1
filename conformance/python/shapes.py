"""What the resources of the stories look like: the smallest bodies that Azure takes.

The same words work in both versions of the client; only how they are carried differs.
"""

from azure.core.serialization import NULL
from azure.mgmt.network import models

LOCATION = "eastus2"


def network(prefix="10.0.0.0/16", **subnets):
    """A virtual network; `subnets` are names and prefixes."""
    return models.VirtualNetwork(
        location=LOCATION,
        address_space=models.AddressSpace(address_prefixes=[prefix]),
        subnets=[models.Subnet(name=name, address_prefix=inner) for name, inner in subnets.items()],
    )


def public_ip(family="IPv4", **tags):
    return models.PublicIPAddress(
        location=LOCATION,
        sku=models.PublicIPAddressSku(name="StandardV2"),
        public_ip_allocation_method="Static",
        public_ip_address_version=family,
        tags=tags,
    )


def load_balancer(own_id, public_ip_id, ports=(80,)):
    """A load balancer of the gateway's own kind; the pool has the load balancer's name."""
    frontend = models.SubResource(id=f"{own_id}/frontendIPConfigurations/frontend")
    pool = models.SubResource(id=f"{own_id}/backendAddressPools/{own_id.rsplit('/', 1)[1]}")
    return models.LoadBalancer(
        location=LOCATION,
        sku=models.LoadBalancerSku(name="Service"),
        scope="Public",
        frontend_ip_configurations=[
            models.FrontendIPConfiguration(
                name="frontend", public_ip_address=models.PublicIPAddress(id=public_ip_id)
            )
        ],
        backend_address_pools=[models.BackendAddressPool(name=own_id.rsplit("/", 1)[1])],
        load_balancing_rules=[
            models.LoadBalancingRule(
                name=f"rule-tcp-{port}",
                protocol="Tcp",
                frontend_port=port,
                backend_port=8000 + port,
                idle_timeout_in_minutes=4,
                enable_floating_ip=False,
                enable_tcp_reset=True,
                frontend_ip_configuration=frontend,
                backend_address_pool=pool,
            )
            for port in ports
        ],
    )


def nat_gateway(gateway_id, public_ip_id):
    """A NAT gateway; without a gateway (`None`) it says so with a literal null."""
    return models.NatGateway(
        location=LOCATION,
        sku=models.NatGatewaySku(name="StandardV2"),
        service_gateway=NULL if gateway_id is None else models.SubResource(id=gateway_id),
        public_ip_addresses=[models.SubResource(id=public_ip_id)],
    )


def gateway(network_id, subnet_id, **tags):
    return models.ServiceGateway(
        location=LOCATION,
        sku=models.ServiceGatewaySku(name="Standard", tier="Regional"),
        virtual_network=models.VirtualNetwork(id=network_id),
        route_target_address=models.RouteTargetAddressPropertiesFormat(
            private_ip_address="10.0.0.4",
            private_ip_allocation_method="Static",
            subnet=models.Subnet(id=subnet_id),
        ),
        tags=tags,
    )
