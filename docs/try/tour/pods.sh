#!/bin/sh
# Twenty pods for each of ten Services, on four nodes, as manifests; with `status`, what a kubelet would
# say of them. One pod in ten leaves through the egress `blue`.
#
#   sh docs/try/tour/pods.sh | kubectl apply -f -
#   sh docs/try/tour/pods.sh status | kubectl apply --server-side --subresource=status -f -
set -eu
for service in 0 1 2 3 4 5 6 7 8 9; do
    for pod in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
        node=$((pod % 4))
        echo "---"
        echo "apiVersion: v1"
        echo "kind: Pod"
        echo "metadata:"
        echo "  name: web-$service-$pod"
        echo "  namespace: shop"
        if [ "${1:-}" = status ]; then
            echo "status:"
            echo "  phase: Running"
            echo "  podIP: 10.2.$service.$((pod + 4))"
            echo "  podIPs: [{ip: 10.2.$service.$((pod + 4))}]"
            echo "  hostIP: 10.1.0.$((node + 4))"
            echo "  hostIPs: [{ip: 10.1.0.$((node + 4))}]"
            echo "  conditions: [{type: Ready, status: 'True'}]"
            continue
        fi
        if [ "$pod" -ge 18 ]; then
            echo "  labels: {app: web-$service, kubernetes.azure.com/service-egress-gateway: blue}"
        else
            echo "  labels: {app: web-$service}"
        fi
        echo "spec:"
        echo "  nodeName: node-$node"
        echo "  containers: [{name: main, image: example.com/web}]"
    done
done
