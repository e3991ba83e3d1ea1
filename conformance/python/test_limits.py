"""Throttling: the client is told how much is left, is made to wait, waits, and gets through."""

import shapes


def test_the_remaining_calls_are_told_and_fall(throttled):
    group = throttled.fresh_group()

    def remaining():
        answer = throttled.raw("GET", f"/resourceGroups/{group}/providers/Microsoft.Network/publicIPAddresses")
        return int(answer.headers["x-ms-ratelimit-remaining-subscription-reads"])

    first = remaining()
    others = [remaining() for _ in range(10)]
    assert min(others) < first


def test_a_throttled_client_waits_as_it_is_told_and_gets_through(throttled):
    """The bucket is tiny, the client's own retry does the rest."""
    group = throttled.fresh_group()
    names = [f"address-{number}" for number in range(4)]
    for name in names:
        throttled.network.public_ip_addresses.begin_create_or_update(group, name, shapes.public_ip()).result()
    assert sorted(it.name for it in throttled.network.public_ip_addresses.list(group)) == names

    writes = [it for it in throttled.requests() if it["method"] == "PUT" and f"/{group}/providers/" in it["path"]]
    refused = [it for it in writes if it["status"] == 429]
    assert refused, "nothing was throttled"
    for at, entry in enumerate(writes):
        if entry["status"] == 429:
            again = writes[at + 1]
            assert again["path"] == entry["path"]
            assert again["at"] - entry["at"] >= entry["retry_after"]
