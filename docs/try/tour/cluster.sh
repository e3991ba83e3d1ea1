#!/bin/sh
# Four nodes with their addresses, a namespace and ten Services, as manifests.
#
#   sh docs/try/tour/cluster.sh | kubectl apply -f -
set -eu
for node in 0 1 2 3; do
    echo "---"
    echo "apiVersion: v1"
    echo "kind: Node"
    echo "metadata: {name: node-$node}"
    echo "status: {addresses: [{type: InternalIP, address: 10.1.0.$((node + 4))}]}"
done
echo "---"
echo "apiVersion: v1"
echo "kind: Namespace"
echo "metadata: {name: shop}"
for service in 0 1 2 3 4 5 6 7 8 9; do
    echo "---"
    echo "apiVersion: v1"
    echo "kind: Service"
    echo "metadata: {name: web-$service, namespace: shop}"
    echo "spec:"
    echo "  type: LoadBalancer"
    echo "  selector: {app: web-$service}"
    echo "  ports: [{name: http, port: 80, targetPort: 8080}]"
done
