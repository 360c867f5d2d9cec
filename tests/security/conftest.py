from tests.support.ca_site import empty_site, new_key, pem, site
from tests.support.master_site import agent1, ca, master, pytest_asyncio_loop_factories, shelves, start, stranger
from tests.support.wired_site import wired

__all__ = [
    "agent1",
    "ca",
    "empty_site",
    "master",
    "new_key",
    "pem",
    "pytest_asyncio_loop_factories",
    "shelves",
    "site",
    "start",
    "stranger",
    "wired",
]
