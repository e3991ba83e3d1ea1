// What the resources of the stories look like: the smallest bodies that Azure takes.

export const LOCATION = "eastus2";

/** A virtual network; `subnets` are names and prefixes. */
export const network = (subnets = {}, prefix = "10.0.0.0/16") => ({
  location: LOCATION,
  addressSpace: { addressPrefixes: [prefix] },
  subnets: Object.entries(subnets).map(([name, addressPrefix]) => ({ name, addressPrefix })),
});

export const publicIp = (family = "IPv4") => ({
  location: LOCATION,
  sku: { name: "StandardV2" },
  publicIPAllocationMethod: "Static",
  publicIPAddressVersion: family,
});

/** A load balancer of the gateway's own kind; the pool has the load balancer's name. */
export function loadBalancer(ownId, publicIpId, ports = [80]) {
  const name = ownId.split("/").at(-1);
  return {
    location: LOCATION,
    sku: { name: "Service" },
    scope: "Public",
    frontendIPConfigurations: [{ name: "frontend", publicIPAddress: { id: publicIpId } }],
    backendAddressPools: [{ name }],
    loadBalancingRules: ports.map((port) => ({
      name: `rule-tcp-${port}`,
      protocol: "Tcp",
      frontendPort: port,
      backendPort: 8000 + port,
      idleTimeoutInMinutes: 4,
      enableFloatingIP: false,
      enableTcpReset: true,
      frontendIPConfiguration: { id: `${ownId}/frontendIPConfigurations/frontend` },
      backendAddressPool: { id: `${ownId}/backendAddressPools/${name}` },
    })),
  };
}

/** A NAT gateway; without a gateway (`null`) it says so with a literal null. */
export const natGateway = (gatewayId, publicIpId) => ({
  location: LOCATION,
  sku: { name: "StandardV2" },
  serviceGateway: gatewayId === null ? null : { id: gatewayId },
  publicIpAddresses: [{ id: publicIpId }],
});

export const gateway = (networkId, subnetId) => ({
  location: LOCATION,
  sku: { name: "Standard", tier: "Regional" },
  virtualNetwork: { id: networkId },
  routeTargetAddress: {
    privateIPAddress: "10.0.0.4",
    privateIPAllocationMethod: "Static",
    subnet: { id: subnetId },
  },
});
