"""Core facts: what the files and the kernel say, and what is made of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from agent.facts.builtin import augeas, hardware, machine, networking, operatingsystem, ssh, storage, virtual
from agent.facts.builtin.host import Host
from agent.facts.builtin.netlink import Address, Link, parse_default_route
from agent.facts.builtin.sizes import capacity, human
from agent.facts.legacy import facts_as_text, legacy_facts, ruby_inspect

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
    facts = operatingsystem.parse_kernel("Linux", "6.1.0-37-amd64")
    assert (facts["kernelversion"], facts["kernelmajversion"]) == ("6.1.0", "6.1")


def test_memory_leaves_swap_out_when_there_is_none() -> None:
    facts = hardware.parse_memory("MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\nSwapTotal: 0 kB\n")
    assert facts == {
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
    facts = hardware.parse_processors("\n".join(block.format(n, n // 4) for n in range(8)))
    assert facts == {
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
        ("0::/init.scope", "HOME=/\0", ("", "")),
        ("1:cpu:/docker/abc", "", ("docker", "abc")),
        ("0::/system.slice/docker-abc.scope", "", ("docker", "abc")),
        ("", "x=1\0container=systemd-nspawn\0", ("systemd_nspawn", "")),
        ("1:cpu:/lxc/web", "", ("lxc", "web")),
        ("", "container=lxc\0", ("lxc", "")),
    ],
)
def test_containers_are_recognised(cgroup: str, environ: str, expected: tuple[str, str]) -> None:
    assert virtual.parse_container(cgroup, environ) == expected


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


def machine_of(root: Path, files: dict[str, str]) -> Host:
    """A machine that consists of a few files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root, {"PATH": ""})


def test_mounts_are_unescaped_and_pseudo_filesystems_left_out() -> None:
    table = (
        "/dev/root / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\ntmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
        "auto /net autofs rw 0 0\n/dev/sdb1 /mnt/my\\040disk xfs ro,noatime 0 0\nbroken\n"
    )
    assert storage.parse_mounts(table, "quiet root=/dev/vda1 ro") == [
        {"device": "/dev/vda1", "filesystem": "ext4", "path": "/", "options": ["rw", "relatime"]},
        {"device": "tmpfs", "filesystem": "tmpfs", "path": "/sys/fs/cgroup", "options": ["rw"]},
        {"device": "/dev/sdb1", "filesystem": "xfs", "path": "/mnt/my disk", "options": ["ro", "noatime"]},
    ]


def test_a_mountpoint_has_its_sizes_in_both_forms() -> None:
    mount = {"device": "/dev/a", "filesystem": "ext4", "path": "/", "options": ["rw"]}
    assert storage.mountpoint(mount, (1000 * 1024, 600 * 1024, 300 * 1024)) == {
        "available": "600.00 KiB",
        "available_bytes": 614400,
        "capacity": "33.33%",
        "device": "/dev/a",
        "filesystem": "ext4",
        "options": ["rw"],
        "size": "1000.00 KiB",
        "size_bytes": 1024000,
        "used": "300.00 KiB",
        "used_bytes": 307200,
    }


def test_a_network_filesystem_that_hangs_has_no_sizes_and_holds_nobody_up() -> None:
    gate = threading.Event()

    def ask(path: str) -> storage.Sizes:
        return (3, 2, 1) if path == "/" or not gate.wait(5) else (0, 0, 0)

    mounts = [{"path": "/", "filesystem": "ext4"}, {"path": "/net", "filesystem": "nfs4"}]
    assert storage.all_sizes(mounts, ask, seconds=0.001) == {"/": (3, 2, 1)}
    gate.set()


def test_disks_and_partitions_come_from_sys_and_udev(tmp_path: Path) -> None:
    host = machine_of(
        tmp_path,
        {
            "sys/block/sda/size": "2048\n",
            "sys/block/sda/dev": "8:0\n",
            "sys/block/sda/device/model": "Disk 1 \n",
            "sys/block/sda/queue/rotational": "0\n",
            "sys/block/sda/sda1/size": "1024\n",
            "sys/block/sda/sda1/dev": "8:1\n",
            "sys/block/dm-0/size": "512\n",
            "sys/block/dm-0/dm/name": "vg-root\n",
            "sys/block/loop0/loop/backing_file": "/a.img\n",
            "run/udev/data/b8:0": "S:disk\nE:ID_SERIAL_SHORT=S1\nE:ID_WWN=0x5\n",
            "run/udev/data/b8:1": "E:ID_FS_TYPE=ext4\nE:ID_FS_UUID=u-1\nE:ID_PART_ENTRY_UUID=p-1\n",
        },
    )
    assert storage.disks(host) == {
        "sda": {"model": "Disk 1", "serial": "S1", "size": "1.00 MiB", "size_bytes": 1048576, "type": "ssd", "wwn": "0x5"}
    }
    assert storage.partitions(host, [{"device": "/dev/sda1", "path": "/"}]) == {
        "/dev/sda1": {"filesystem": "ext4", "mount": "/", "partuuid": "p-1", "size": "512.00 KiB", "size_bytes": 524288, "uuid": "u-1"},
        "/dev/mapper/vg-root": {"size": "256.00 KiB", "size_bytes": 262144},
        "/dev/loop0": {"backing_file": "/a.img", "size": "0 bytes", "size_bytes": 0},
    }


def test_a_machine_of_which_no_disk_has_parts_has_no_partitions(tmp_path: Path) -> None:
    host = machine_of(tmp_path, {"sys/block/vda/size": "2048\n", "sys/block/vda/device/model": "Disk\n"})
    assert set(storage.resolve_storage(host)) == {"disks"}


def test_blkid_is_read_where_udev_says_nothing() -> None:
    text = '/dev/sda1: LABEL="my root" UUID="u-1" TYPE="ext4" PARTUUID="p-1"\n'
    assert storage.parse_blkid(text) == {"/dev/sda1": {"LABEL": "my root", "UUID": "u-1", "TYPE": "ext4", "PARTUUID": "p-1"}}


def test_host_keys_have_sshfp_fingerprints_and_flat_names(tmp_path: Path) -> None:
    host = machine_of(
        tmp_path, {"etc/ssh/ssh_host_ed25519_key.pub": "ssh-ed25519 AAAAC3Nz root@x\n", "etc/ssh/ssh_host_rsa_key.pub": "odd\n"}
    )
    facts = ssh.resolve_ssh(host)
    assert facts["ssh"]["ed25519"]["type"] == "ssh-ed25519"
    assert facts["ssh"]["ed25519"]["fingerprints"]["sha1"].startswith("SSHFP 4 1 ")
    flat = legacy_facts(facts)
    assert flat["sshed25519key"] == "AAAAC3Nz"
    assert flat["sshfp_ed25519"].splitlines()[1].startswith("SSHFP 4 2 ")


@pytest.mark.parametrize(
    ("files", "virtual_is", "hypervisors"),
    [
        ({}, "physical", {}),
        ({"proc/1/cgroup": "0::/docker/0a\n", "proc/1/environ": "x"}, "docker", {"docker": {"id": "0a"}}),
        ({"sys/class/dmi/id/product_name": "VirtualBox\n"}, "virtualbox", {"virtualbox": {}}),
        ({"sys/class/dmi/id/sys_vendor": "VMware, Inc.\n", "sys/class/dmi/id/product_name": "VMware7,1\n"}, "vmware", {"vmware": {}}),
        ({"sys/class/dmi/id/bios_vendor": "Amazon EC2\n", "sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, "kvm", {"kvm": {"amazon": True}}),
        ({"dev/xen/evtchn": "", "proc/xen/capabilities": "control_d\n"}, "xen0", {"xen": {"context": "pv", "privileged": True}}),
        ({"proc/vz/veinfo": "", "proc/self/status": "envID:\t101\n"}, "openvzve", {"openvz": {"id": 101, "host": False}}),
        ({"proc/cpuinfo": "flags : fpu hypervisor\n", "sys/bus/virtio/devices/virtio0": ""}, "kvm", {"kvm": {}}),
    ],
)
def test_the_hypervisor_is_told_by_files(tmp_path: Path, files: dict[str, str], virtual_is: str, hypervisors: dict[str, object]) -> None:
    facts = virtual.resolve_virtual(machine_of(tmp_path, files))
    assert (facts["virtual"], facts.get("hypervisors", {})) == (virtual_is, hypervisors)
    assert facts["is_virtual"] is (virtual_is not in ("physical", "xen0"))


def test_a_container_of_a_virtual_machine_has_both_hypervisors(tmp_path: Path) -> None:
    machine_of(tmp_path, {"proc/1/cgroup": "0::/docker/0a\n", "proc/1/environ": "x", "bin/virt-what": "#!/bin/sh\necho kvm; echo docker\n"})
    (tmp_path / "bin" / "virt-what").chmod(0o755)
    facts = virtual.resolve_virtual(Host(tmp_path, {"PATH": str(tmp_path / "bin")}))
    assert facts == {"virtual": "docker", "is_virtual": True, "hypervisors": {"kvm": {}, "docker": {"id": "0a"}}}


@pytest.mark.parametrize(
    ("output", "expected"),
    [("", ""), ("xen\nxen-domU\n", "xenu"), ("xen\nxen-dom0\n", "xen0"), ("redhat\nkvm\n", "kvm"), ("ibm_systemz\n", "zlinux")],
)
def test_virt_what_is_translated(output: str, expected: str) -> None:
    assert virtual.parse_virt_what(output) == expected


def test_the_chassis_has_the_name_of_its_number(tmp_path: Path) -> None:
    host = machine_of(tmp_path, {"sys/class/dmi/id/chassis_type": "23\n", "sys/class/dmi/id/board_vendor": "Acme\n"})
    assert hardware.resolve_dmi(host) == {"dmi": {"board": {"manufacturer": "Acme"}, "chassis": {"type": "Rack Mount Chassis"}}}


def test_augeas_version_is_read_off_the_library() -> None:
    assert augeas.parse_version(b"x\0/augeas/version\0" + b"1.14.0\0") == "1.14.0"
    assert augeas.parse_version(b"\0" + b"1.2.3\0" + b"y\0" + b"4.5.6\0") == ""


def test_networking_takes_the_primary_interfaces_values() -> None:
    links = [Link(1, "lo", 65536, "", "unknown"), Link(2, "eth0", 1500, "02:00:00:00:00:01", "up")]
    addresses = [
        Address(1, "127.0.0.1", 8, "host", ("permanent",)),
        Address(2, "192.0.2.7", 24, "global", ()),
        Address(2, "fe80::1", 64, "link", ("permanent",)),
        Address(2, "2001:db8::7", 64, "global", ("permanent",)),
    ]
    facts = networking.networking({"hostname": "web1", "fqdn": "web1"}, links, addresses, "eth0", {"eth0": "192.0.2.1"})
    assert facts["primary"] == "eth0"
    assert (facts["ip"], facts["netmask"], facts["network"], facts["ip6"], facts["dhcp"]) == (
        "192.0.2.7",
        "255.255.255.0",
        "192.0.2.0",
        "2001:db8::7",
        "192.0.2.1",
    )
    assert facts["interfaces"]["lo"]["ip"] == "127.0.0.1"
    assert "mac" not in facts["interfaces"]["lo"]


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
        "dhcp_servers": {"system": None},
    }


def test_stringified_facts_are_what_a_3x_agent_sends() -> None:
    values = {"a": True, "b": 3, "c": {"x": [1, None, 'q"#{']}, "d": "text", "e": None, "f": 1.5}
    assert facts_as_text(values) == {"a": "true", "b": "3", "c": '{"x"=>[1, nil, "q\\"\\#{"]}', "d": "text", "e": "", "f": "1.5"}
    assert ruby_inspect([]) == "[]"


def test_this_machine_has_the_facts_that_manifests_use(tmp_path: Path) -> None:
    host = Host(environ={"PATH": "/usr/bin"})
    for resolver in (operatingsystem.resolve_os, operatingsystem.resolve_kernel, hardware.resolve_memory, machine.resolve_identity):
        assert resolver(host)
    assert networking.resolve_networking(host)["networking"]["hostname"] == os.uname().nodename.split(".")[0]
    empty = Host(root=tmp_path)
    assert hardware.resolve_memory(empty) == {}
    assert hardware.resolve_dmi(empty) == {}
