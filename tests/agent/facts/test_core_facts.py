"""Core facts: what the files and the kernel say, and what is made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.facts import hardware, machine, networking, operatingsystem
from agent.facts.host import Host
from agent.facts.legacy import inspected, legacy_facts, stringified
from agent.facts.netlink import Address, Link, parse_default_route
from agent.facts.sizes import capacity, human

DEBIAN = {"ID": "debian", "NAME": "Debian GNU/Linux", "VERSION_ID": "12", "VERSION_CODENAME": "bookworm"}
UBUNTU = {"ID": "ubuntu", "NAME": "Ubuntu", "ID_LIKE": "debian", "VERSION_ID": "22.04"}
ROCKY = {"ID": "rocky", "NAME": "Rocky Linux", "ID_LIKE": "rhel centos fedora", "VERSION_ID": "9.3"}
RHEL = {"ID": "rhel", "NAME": "Red Hat Enterprise Linux", "ID_LIKE": "fedora", "VERSION_ID": "8.9"}
ALPINE = {"ID": "alpine", "NAME": "Alpine Linux", "VERSION_ID": "3.19.1"}
ARCH = {"ID": "arch", "NAME": "Arch Linux"}


@pytest.mark.parametrize(
    ("release", "name", "family"),
    [
        (DEBIAN, "Debian", "Debian"),
        (UBUNTU, "Ubuntu", "Debian"),
        (ROCKY, "Rocky", "RedHat"),
        (RHEL, "RedHat", "RedHat"),
        (ALPINE, "Alpine", "Alpine"),
        (ARCH, "Archlinux", "Archlinux"),
        ({"ID": "sles", "NAME": "SLES", "ID_LIKE": "suse"}, "SLES", "Suse"),
    ],
)
def test_the_distribution_has_facters_name_and_family(release: dict[str, str], name: str, family: str) -> None:
    assert (operatingsystem.name_of(release), operatingsystem.family_of(release)) == (name, family)


@pytest.mark.parametrize(
    ("release", "debian", "redhat", "expected"),
    [
        (DEBIAN, "12.11\n", "", {"full": "12.11", "major": "12", "minor": "11"}),
        (DEBIAN, "12.0\n", "", {"full": "12.0", "major": "12", "minor": "0"}),
        (DEBIAN, "trixie/sid\n", "", {"full": "trixie/sid", "major": "trixie/sid"}),
        (UBUNTU, "bookworm/sid", "", {"full": "22.04", "major": "22.04"}),
        (ROCKY, "", "Rocky Linux release 9.3 (Blue Onyx)\n", {"full": "9.3", "major": "9", "minor": "3"}),
        (ALPINE, "", "", {"full": "3.19.1", "major": "3", "minor": "19"}),
        (ARCH, "", "", {}),
    ],
)
def test_the_release_is_split_as_facter_does(release: dict[str, str], debian: str, redhat: str, expected: dict[str, str]) -> None:
    assert operatingsystem.release_of(release, debian, redhat) == expected


def test_os_release_values_lose_their_quotes() -> None:
    text = 'NAME="Debian GNU/Linux"\nID=debian\n# comment\nPRETTY_NAME=\'A "b"\'\nbroken\n'
    assert operatingsystem.parse_os_release(text) == {"NAME": "Debian GNU/Linux", "ID": "debian", "PRETTY_NAME": 'A "b"'}


def test_kernel_versions_are_groups_of_digits() -> None:
    found = operatingsystem.parse_kernel("Linux", "6.1.0-37-amd64")
    assert (found["kernelversion"], found["kernelmajversion"]) == ("6.1.0", "6.1")


def test_memory_leaves_swap_out_when_there_is_none() -> None:
    found = hardware.parse_memory("MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\nSwapTotal: 0 kB\n")
    assert found == {
        "system": {
            "available": "1.00 MiB",
            "available_bytes": 1048576,
            "capacity": "75.00%",
            "total": "4.00 MiB",
            "total_bytes": 4194304,
            "used": "3.00 MiB",
            "used_bytes": 3145728,
        }
    }


def test_processors_count_sockets_and_threads() -> None:
    block = "processor\t: {}\nmodel name\t: Fast\nphysical id\t: {}\nsiblings\t: 4\ncpu cores\t: 2\ncpu MHz\t\t: 2600.000\n"
    found = hardware.parse_processors("\n".join(block.format(n, n // 4) for n in range(8)))
    assert found == {
        "count": 8,
        "physicalcount": 2,
        "models": ["Fast"] * 8,
        "isa": "unknown",
        "cores": 2,
        "threads": 2,
        "speed": "2.60 GHz",
    }


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.00 KiB"), (25276514304, "23.54 GiB")])
def test_sizes_read_as_facter_writes_them(count: int, text: str) -> None:
    assert human(count) == text


@pytest.mark.parametrize(("used", "total", "text"), [(0, 10, "0%"), (10, 10, "100%"), (0, 0, "100%"), (1778, 10000, "17.78%")])
def test_capacity_has_two_digits(used: int, total: int, text: str) -> None:
    assert capacity(used, total) == text


@pytest.mark.parametrize(
    ("text", "uptime"), [("420.5 1\n", "0:07 hours"), ("86400.1 1", "1 day"), ("1036800 1", "12 days"), ("47100 1", "13:05 hours")]
)
def test_uptime_is_hours_then_days(text: str, uptime: str) -> None:
    assert machine.parse_uptime(text)["uptime"] == uptime


@pytest.mark.parametrize(
    ("cgroup", "environ", "expected"),
    [
        ("0::/init.scope", "HOME=/\0", ""),
        ("1:cpu:/docker/abc", "", "docker"),
        ("", "x=1\0container=systemd-nspawn\0", "systemd_nspawn"),
        ("1:cpu:/lxc/web", "", "lxc"),
    ],
)
def test_containers_are_recognised(cgroup: str, environ: str, expected: str) -> None:
    assert machine.parse_container(cgroup, environ) == expected


@pytest.mark.parametrize(
    ("hostname", "canonical", "resolv", "expected"),
    [
        ("web1.example.com", "", "", {"hostname": "web1", "domain": "example.com", "fqdn": "web1.example.com"}),
        ("web1", "web1.lan", "search other", {"hostname": "web1", "domain": "lan", "fqdn": "web1.lan"}),
        ("web1", "localhost.localdomain", "search a.org b.org\n", {"hostname": "web1", "domain": "a.org", "fqdn": "web1.a.org"}),
        ("web1", "", "search a.org\ndomain d.org\n", {"hostname": "web1", "domain": "d.org", "fqdn": "web1.d.org"}),
        ("vm", "vm", "", {"hostname": "vm", "fqdn": "vm"}),
    ],
)
def test_the_domain_comes_from_name_resolver_or_resolv_conf(hostname: str, canonical: str, resolv: str, expected: dict[str, str]) -> None:
    assert networking.parse_names(hostname, canonical, resolv) == expected


def test_networking_takes_the_primary_interfaces_values() -> None:
    links = [Link(1, "lo", 65536, "", "unknown"), Link(2, "eth0", 1500, "02:00:00:00:00:01", "up")]
    addresses = [
        Address(1, "127.0.0.1", 8, "host", ("permanent",)),
        Address(2, "192.0.2.7", 24, "global", ()),
        Address(2, "fe80::1", 64, "link", ("permanent",)),
        Address(2, "2001:db8::7", 64, "global", ("permanent",)),
    ]
    found = networking.networking({"hostname": "web1", "fqdn": "web1"}, links, addresses, "eth0", {"eth0": "192.0.2.1"})
    assert found["primary"] == "eth0"
    assert (found["ip"], found["netmask"], found["network"], found["ip6"], found["dhcp"]) == (
        "192.0.2.7",
        "255.255.255.0",
        "192.0.2.0",
        "2001:db8::7",
        "192.0.2.1",
    )
    assert found["interfaces"]["lo"]["ip"] == "127.0.0.1"
    assert "mac" not in found["interfaces"]["lo"]


def test_the_default_route_of_the_least_metric_counts() -> None:
    table = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "wlan0 00000000 0102000A 0003 0 0 600 00000000 0 0 0\n"
        "eth0 00000000 0102000A 0003 0 0 100 00000000 0 0 0\n"
        "eth0 0002000A 00000000 0001 0 0 100 00FFFFFF 0 0 0\n"
    )
    assert parse_default_route(table) == "eth0"


def test_legacy_names_follow_the_structured_facts() -> None:
    values = {
        "os": {"name": "Debian", "family": "Debian", "release": {"full": "12.11", "major": "12"}},
        "networking": {"interfaces": {"eth0.1": {"ip": "192.0.2.7", "mtu": 1500}}, "ip": "192.0.2.7"},
        "memory": {"system": {"total_bytes": 2**30, "total": "1.00 GiB"}},
    }
    assert legacy_facts(values) == {
        "osfamily": "Debian",
        "operatingsystem": "Debian",
        "operatingsystemrelease": "12.11",
        "operatingsystemmajrelease": "12",
        "ipaddress": "192.0.2.7",
        "memorysize": "1.00 GiB",
        "memorysize_mb": 1024.0,
        "interfaces": "eth0_1",
        "ipaddress_eth0_1": "192.0.2.7",
        "mtu_eth0_1": 1500,
    }


def test_stringified_facts_are_what_a_3x_agent_sends() -> None:
    values = {"a": True, "b": 3, "c": {"x": [1, None, 'q"#{']}, "d": "text", "e": None, "f": 1.5}
    assert stringified(values) == {"a": "true", "b": "3", "c": '{"x"=>[1, nil, "q\\"\\#{"]}', "d": "text", "e": "", "f": "1.5"}
    assert inspected([]) == "[]"


def test_this_machine_has_the_facts_that_manifests_use(tmp_path: Path) -> None:
    host = Host(environ={"PATH": "/usr/bin"})
    for resolver in (operatingsystem.resolve_os, operatingsystem.resolve_kernel, hardware.resolve_memory, machine.resolve_identity):
        assert resolver(host)
    assert networking.resolve_networking(host)["networking"]["hostname"] == os.uname().nodename.split(".")[0]
    empty = Host(root=tmp_path)
    assert hardware.resolve_memory(empty) == {}
    assert hardware.resolve_dmi(empty) == {}
