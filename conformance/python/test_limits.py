"""Throttling: the client is told how much is left, is made to wait, waits, and gets through."""

import json

import shapes

STATIC = {"publicIPAllocationMethod": "Static"}


def test_the_remaining_calls_are_told_and_fall(throttled):
    group = throttled.fresh_group()

    def remaining():
        answer = throttled.raw("GET", f"/resourceGroups/{group}/providers/Microsoft.Network/publicIPAddresses")
        return int(answer.headers["x-ms-ratelimit-remaining-subscription-reads"])

    first = remaining()
    others = [remaining() for _ in range(10)]
    assert min(others) < first


def test_each_bucket_tells_what_is_left(raw, group):
    path = f"/resourceGroups/{group}/providers/Microsoft.Network/publicIPAddresses"
    body = json.dumps({"location": shapes.LOCATION, "sku": {"name": "StandardV2"}, "properties": STATIC})
    for method, name, bucket in [("PUT", "new", "writes"), ("GET", "new", "reads"), ("DELETE", "nobody", "deletes")]:
        answer = raw(method, f"{path}/{name}", body if method == "PUT" else None)
        assert answer.ok
        for scope in ("subscription", "subscription-global"):
            assert int(answer.headers[f"x-ms-ratelimit-remaining-{scope}-{bucket}"]) > 0


def test_a_throttled_client_waits_as_it_is_told_and_gets_through(throttled):
    """The bucket is tiny, the client's own retry does the rest."""
    group = throttled.fresh_group()
    names = [f"address-{number}" for number in range(4)]
    for name in names:
        throttled.network.public_ip_addresses.begin_create_or_update(group, name, shapes.public_ip()).result()
    assert sorted(it.name for it in throttled.network.public_ip_addresses.list(group)) == names

    writes = throttled.writes_into(group)
    assert any(it["status"] == 429 for it in writes), "nothing was throttled"
    for refused, again in zip(writes, writes[1:]):
        if refused["status"] == 429:
            assert again["path"] == refused["path"]
            assert again["arrivedMs"] - refused["answeredMs"] >= 1000 * refused["retryAfter"]
