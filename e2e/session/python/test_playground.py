"""Drives an API server, the playground's or a real one, with the Python client of Kubernetes.

KUBECONFIG says where it is. Every test has a namespace of its own.
"""

import uuid

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

PATIENCE = 30


@pytest.fixture(scope="session")
def api():
    config.load_kube_config()
    return client.ApiClient()


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


@pytest.fixture
def namespace(core):
    name = f"py-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    yield name
    core.delete_namespace(name)


def config_map(name, labels=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def refusal(call):
    with pytest.raises(ApiException) as refused:
        call()
    return refused.value


def test_what_is_created_is_read_listed_and_gone_after_deletion(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("one", colour="blue"))
    assert made.metadata.uid and made.metadata.resource_version
    assert core.read_namespaced_config_map("one", namespace).data == {"colour": "blue"}
    assert [it.metadata.name for it in core.list_namespaced_config_map(namespace).items] == ["one"]
    core.delete_namespaced_config_map("one", namespace)
    assert refusal(lambda: core.read_namespaced_config_map("one", namespace)).status == 404


def test_a_list_is_selected_by_labels_and_read_in_pages(core, namespace):
    for number in range(5):
        side = "odd" if number % 2 else "even"
        core.create_namespaced_config_map(namespace, config_map(f"map-{number}", {"side": side}))
    odd = core.list_namespaced_config_map(namespace, label_selector="side=odd")
    assert [it.metadata.name for it in odd.items] == ["map-1", "map-3"]
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        assert len(page.items) <= 2
        names += [it.metadata.name for it in page.items]
        token = page.metadata._continue or ""
    assert names == [f"map-{number}" for number in range(5)]


def test_patches_of_every_kind_change_what_they_name(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("one", a="1", b="2"))
    core.patch_namespaced_config_map("one", namespace, [{"op": "replace", "path": "/data/a", "value": "7"}])
    assert core.read_namespaced_config_map("one", namespace).data == {"a": "7", "b": "2"}
    for kind, body, data in [
        ("application/merge-patch+json", {"data": {"b": None}}, {"a": "7"}),
        ("application/strategic-merge-patch+json", {"data": {"c": "3"}}, {"a": "7", "c": "3"}),
    ]:
        core.patch_namespaced_config_map("one", namespace, body, _content_type=kind)
        assert core.read_namespaced_config_map("one", namespace).data == data


def test_a_watch_tells_every_change_after_its_list(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("one", step="1"))
    listed = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.patch_namespaced_config_map("one", namespace, {"data": {"step": "2"}})
    core.delete_namespaced_config_map("one", namespace)
    seen = []
    watching = watch.Watch()
    for event in watching.stream(core.list_namespaced_config_map, namespace, resource_version=listed,
                                 timeout_seconds=PATIENCE):
        seen.append((event["type"], event["object"].data["step"]))
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == [("MODIFIED", "2"), ("DELETED", "2")]


def test_a_watch_from_a_version_that_is_forgotten_is_gone(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("one"))
    watching = watch.Watch()
    stream = watching.stream(core.list_namespaced_config_map, namespace, resource_version="1",
                             timeout_seconds=PATIENCE)
    assert refusal(lambda: next(stream)).status == 410


def test_an_update_of_an_old_version_is_a_conflict_and_changes_nothing(core, namespace):
    old = core.create_namespaced_config_map(namespace, config_map("one", a="1"))
    core.patch_namespaced_config_map("one", namespace, {"data": {"a": "2"}})
    old.data = {"a": "3"}
    refused = refusal(lambda: core.replace_namespaced_config_map("one", namespace, old))
    assert (refused.status, "the object has been modified" in refused.body) == (409, True)
    assert core.read_namespaced_config_map("one", namespace).data == {"a": "2"}


def test_a_second_object_of_a_name_is_refused(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("one"))
    refused = refusal(lambda: core.create_namespaced_config_map(namespace, config_map("one")))
    assert (refused.status, '"reason":"AlreadyExists"' in refused.body) == (409, True)


def test_the_dynamic_client_finds_kinds_by_discovery_and_applies_on_the_server(api, namespace):
    services = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="Service")
    body = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    made = services.server_side_apply(body=body, namespace=namespace, field_manager="one")
    assert made.spec.clusterIP
    body["spec"]["ports"][0]["targetPort"] = 8080
    taken = {"body": body, "namespace": namespace, "field_manager": "two"}
    body["spec"]["selector"] = {"app": "other"}
    refused = refusal(lambda: services.server_side_apply(**taken))
    assert (refused.status, 'conflict with \\"one\\"' in str(refused.body)) == (409, True)
    forced = services.server_side_apply(**taken, force_conflicts=True)
    assert forced.spec.selector.to_dict() == {"app": "other"}
    assert services.get(name="web", namespace=namespace).spec.ports[0].targetPort == 8080
    services.delete(name="web", namespace=namespace)
    assert services.get(namespace=namespace).items == []


def test_a_deployment_has_its_pods_and_its_scale(api, core, namespace):
    apps = client.AppsV1Api(api)
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "example/web"}]},
    }
    apps.create_namespaced_deployment(namespace, {
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    })
    watching = watch.Watch()
    for event in watching.stream(apps.list_namespaced_deployment, namespace, timeout_seconds=PATIENCE):
        if event["object"].status.replicas == 3:
            watching.stop()
    assert len(core.list_namespaced_pod(namespace, label_selector="app=web").items) == 3
    apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 1}})
    assert apps.read_namespaced_deployment_scale("web", namespace).spec.replicas == 1


def test_an_event_and_a_lease_are_kept_as_they_were_written(api, core, namespace):
    core.create_namespaced_event(namespace, {
        "metadata": {"name": "one"}, "involvedObject": {"kind": "Service", "name": "web", "namespace": namespace},
        "reason": "Tried", "message": "by hand", "type": "Normal",
    })
    assert core.read_namespaced_event("one", namespace).reason == "Tried"
    leases = client.CoordinationV1Api(api)
    leases.create_namespaced_lease(namespace, {"metadata": {"name": "one"}, "spec": {"holderIdentity": "me"}})
    assert leases.read_namespaced_lease("one", namespace).spec.holder_identity == "me"
