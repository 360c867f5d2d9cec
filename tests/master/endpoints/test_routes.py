"""The routes of the endpoints, read off their modules."""

from __future__ import annotations

from collections import Counter

import pytest

from master.endpoints.routes import EndpointRoute, RouteTable, find_routes
from shared.names import FIRST_SEGMENTS

PATHS = ("/a/{rest*}", "/a/{name}", "/a/b", "/a/b/{rest*}", "/{name}/b/c")
TABLE = RouteTable(EndpointRoute(path, {}) for path in PATHS)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/a/b", "/a/b"),
        ("/a/c", "/a/{name}"),
        ("/a/", "/a/{rest*}"),  # no parameter is empty
        ("/a", "/a/{rest*}"),
        ("/a/c/d", "/a/{rest*}"),
        ("/a/b/c", "/a/b/{rest*}"),
        ("/c/b/c", "/{name}/b/c"),
        ("/ab", None),
        ("/A/b", None),
        ("/a/b\n", "/a/{name}"),
    ],
)
def test_a_word_goes_before_a_parameter_and_that_before_the_rest(path: str, route: str | None) -> None:
    found = TABLE.of(path)
    assert (found and found.path) == route


def test_no_two_endpoints_have_the_same_path() -> None:
    assert [path for path, count in Counter(route.path for route in find_routes()).items() if count > 1] == []


def test_no_environment_has_the_first_word_of_an_endpoint_as_its_name() -> None:
    """Otherwise a request to the endpoint would be one of Puppet 3.x, which begins with the environment."""
    assert {route.segments[0] for route in find_routes()} == FIRST_SEGMENTS
