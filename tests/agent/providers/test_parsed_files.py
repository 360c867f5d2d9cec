"""Things that are lines of files: read, changed, written whole; and no value ever adds a line of its own."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass, field

import pytest

from agent.providers.cron.crontab import Crontab, CrontabFormat
from agent.providers.host.parsed import HostsFormat
from agent.providers.lines import line_providers
from agent.providers.mailalias.aliases import AliasesFormat
from agent.providers.mount.parsed import FstabFormat, mount_points_in
from agent.providers.parsed.base import local_now
from agent.providers.ssh_authorized_key.parsed import AuthorizedKeysFormat, options_of
from agent.providers.sshkey.parsed import KnownHostsFormat
from agent.state.runlog import RunLog
from shared.errors import ResourceError
from shared.types import builtin_types
from shared.types.cron import Cron
from shared.types.host import HostEntry
from shared.types.mailalias import Mailalias
from shared.types.mount import MountPoint
from shared.types.ssh_authorized_key import SshAuthorizedKey
from shared.types.sshkey import Sshkey
from tests.support.fake_commands import apply
from tests.support.needs import needs_root

KEPT = [
    (HostsFormat(), "# c\n\n127.0.0.1\tlocalhost\n192.0.2.1\ta\tb c\t# text\nnonsense\n::1\tip6-localhost\n"),
    (FstabFormat(), "# c\nUUID=x\t/\text4\tdefaults\t0\t1\nhost:/a\\040b\t/m\\040n\tnfs\tro\t0\t0\nshort\n"),
    (KnownHostsFormat(), "# c\nweb,192.0.2.1 ssh-rsa AAAA\n@cert-authority *.x ssh-rsa BBBB\n|1|abc=|def= ssh-ed25519 CCCC note\n"),
    (AliasesFormat(), '# c\nroot: a,b@x\npipe: "|/bin/x, y"\nlist: :include: /etc/list\n'),
    (AuthorizedKeysFormat(), '# c\nno-pty,command="a, b" ssh-rsa AAAA me\n1024 35 123 old\n'),
    (CrontabFormat(), "# c\nA=1\n0 0 * * * /bin/x\n# Puppet Name: j\nB=2\n*/5 1,2 * * 1-5 /bin/y z\n@reboot /bin/b\n"),
]


@pytest.mark.parametrize(("form", "text"), KEPT, ids=lambda each: type(each).__name__)
def test_what_is_in_a_file_stays_as_it_is(form, text):
    written = form.write(form.parse(text), local_now())
    assert written.endswith(text)
    again = form.write(form.parse(written), local_now())
    assert again.count("HEADER") == written.count("HEADER")  # headers of earlier runs do not pile up


@pytest.mark.parametrize(("form", "text"), KEPT, ids=lambda each: type(each).__name__)
def test_AG_08_a_record_with_a_newline_is_never_written(form, text):
    records = form.parse(text)
    record = next(record for record in records if record.text is None and not record.values.get("_unmanaged"))
    for field_name in [name for name, value in record.values.items() if isinstance(value, str)]:
        before = record.values[field_name]
        record.values[field_name] = "x\n* * * * * evil"
        with pytest.raises(ResourceError, match="newline"):
            form.write(records, local_now())
        record.values[field_name] = before


EVIL = "x\n0.0.0.0 evil"
REFUSED = [
    ("host", {"ip": "192.0.2.1\n192.0.2.2 evil"}),
    ("host", {"ip": "192.0.2.1", "host_aliases": ["a\nb"]}),
    ("host", {"ip": "192.0.2.1", "comment": EVIL}),
    ("mount", {"device": EVIL}),
    ("mount", {"device": "d", "fstype": EVIL}),
    ("mount", {"device": "d", "fstype": "ext4", "options": EVIL}),
    ("mount", {"device": "d", "fstype": "ext4", "pass": "0\n1"}),
    ("mount", {"device": "d", "fstype": "ext4", "dump": "0\n1"}),
    ("cron", {"command": EVIL}),
    ("cron", {"command": "/bin/x", "environment": "A=1\n* * * * * evil"}),
    ("cron", {"command": "/bin/x", "minute": "1\n2"}),
    ("cron", {"command": "/bin/x", "minute": "*/5\n2"}),
    ("cron", {"command": "/bin/x", "special": "daily\nx"}),
    ("sshkey", {"type": "rsa", "key": EVIL}),
    ("sshkey", {"type": "rsa", "key": "A", "host_aliases": ["a\nb"]}),
    ("ssh_authorized_key", {"user": "root", "type": "rsa", "key": EVIL}),
    ("ssh_authorized_key", {"user": "root", "type": "rsa", "key": "A", "options": ['from="x"\nssh-rsa EVIL']}),
    ("mailalias", {"recipient": EVIL}),
    ("mailalias", {"file": "/x\nroot: evil"}),
    ("k5login", {"principals": ["a\nevil"]}),
    ("yumrepo", {"descr": EVIL}),
    ("yumrepo", {"baseurl": "http://x/\n[evil]"}),
    ("yumrepo", {"proxy_password": EVIL}),
    ("yumrepo", {"enabled": "1\n"}),
    ("file_line", {"path": "/x", "line": EVIL}),
    ("ini_setting", {"path": "/x", "section": "s", "setting": "a", "value": EVIL}),
    ("ini_setting", {"path": "/x", "section": "s\n[evil]", "setting": "a", "value": "1"}),
    ("ini_setting", {"path": "/x", "section": "s", "setting": "a\nb", "value": "1"}),
    ("ini_setting", {"path": "/x", "section": "s", "setting": "a", "value": "1", "key_val_separator": "=\nb="}),
    ("ini_subsetting", {"path": "/x", "setting": "a", "subsetting": "b", "value": EVIL}),
    ("ini_subsetting", {"path": "/x", "setting": "a", "subsetting": EVIL}),
]


@pytest.mark.parametrize(("name", "given"), REFUSED, ids=lambda each: each if isinstance(each, str) else next(reversed(each)))
def test_AG_08_a_value_with_a_newline_is_refused(name, given):
    with pytest.raises(ResourceError):
        builtin_types()[name]("/thing" if name in ("mount", "k5login") else "thing", given)


@pytest.mark.parametrize("name", ["host", "mount", "cron", "sshkey", "ssh_authorized_key", "mailalias", "yumrepo"])
def test_AG_08_a_name_with_a_newline_is_refused(name):
    needed = {"sshkey": {"type": "rsa"}, "ssh_authorized_key": {"user": "root"}}.get(name, {})
    with pytest.raises(ResourceError):
        builtin_types()[name]("a\nb", {"ensure": "absent", **needed})


def host(name, path, **given):
    return HostEntry(name, {"ip": "192.0.2.1", "target": str(path), **given})


async def test_several_resources_of_one_file_are_all_in_it_and_it_is_kept_once(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    done = await apply(*(host(name, hosts) for name in ("a", "b", "c")), bucket=tmp_path / "bucket")
    assert [line.split("\t")[-1] for line in hosts.read_text().splitlines()[3:]] == ["localhost", "a", "b", "c"]
    assert done.messages.count(f"Computing checksum on file {hosts}") == 1
    assert any(path.read_text() == "127.0.0.1 localhost\n" for path in (tmp_path / "bucket").rglob("contents"))


async def test_a_resource_that_cannot_be_written_does_not_stop_the_others(tmp_path):
    hosts = tmp_path / "hosts"
    done = await apply(HostEntry("a", {"ensure": "present", "target": str(hosts)}), host("b", hosts), bucket=tmp_path / "bucket")
    assert "Could not evaluate: ip is a required attribute for hosts" in done.messages
    assert hosts.read_text().endswith("192.0.2.1\tb\n")
    assert "\ta" not in hosts.read_text()


async def test_a_file_that_cannot_be_read_is_never_written(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    done = await apply(host("a", hosts), bucket=tmp_path / "bucket")
    assert any("is not a regular file" in message for message in done.messages)
    assert hosts.is_dir()
    assert done.statuses["Host[a]"].failed


async def test_a_missing_folder_is_named_by_the_whole_path(tmp_path):
    hosts = tmp_path / "none" / "hosts"
    done = await apply(host("a", hosts), bucket=tmp_path / "bucket")
    assert f"Could not evaluate: No such file or directory - {hosts}" in done.messages


async def test_a_resource_moves_to_the_target_it_names(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("192.0.2.1 a\n192.0.2.2 b\n")
    await apply(host("b", old, ip="192.0.2.2"), host("a", new), bucket=tmp_path / "bucket")
    assert "\ta\n" in new.read_text()
    assert "\ta\n" not in old.read_text()


async def test_mode_and_bytes_that_are_no_utf_8_are_kept(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"# caf\xe9\n192.0.2.9 x\n")
    hosts.chmod(0o640)
    await apply(host("a", hosts), bucket=tmp_path / "bucket")
    assert b"# caf\xe9\n" in hosts.read_bytes()
    assert hosts.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("type_name", "target", "mode"),
    [
        ("mailalias", "/etc/aliases", 0o600),
        ("ssh_authorized_key", "/root/.ssh/authorized_keys", 0o600),
        ("sshkey", "/etc/ssh/ssh_known_hosts", 0o644),
        ("host", "/etc/hosts", 0o644),
        ("host", "/srv/hosts", 0o600),
    ],
)
def test_a_new_file_is_roots_alone_unless_everybody_needs_it(type_name, target, mode):
    (provider,) = line_providers(RunLog(), None)[type_name]()
    assert provider.storage.mode_of_new(target) == mode


async def test_noop_writes_nothing_and_keeps_nothing(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a\n")
    done = await apply(host("b", hosts), bucket=tmp_path / "bucket", noop=True)
    assert hosts.read_text() == "192.0.2.1 a\n"
    assert not (tmp_path / "bucket").exists()
    assert [event[1] for event in done.events] == ["noop"]


@needs_root
async def test_AG_01_a_users_links_lead_root_nowhere(tmp_path):
    account = pwd.getpwnam("nobody")
    tmp_path.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    secret = tmp_path / "shadow"
    secret.write_text("ssh-rsa SECRET root\n")
    secret.chmod(0o600)
    (home / ".ssh").mkdir()
    (home / ".ssh/authorized_keys").symlink_to(secret)
    for path in (home, home / ".ssh", home / ".ssh/authorized_keys"):
        os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
    target = str(home / ".ssh/authorized_keys")
    key = SshAuthorizedKey("k", {"user": "nobody", "type": "rsa", "key": "AAAA", "target": target})
    done = await apply(key, bucket=tmp_path / "bucket")
    assert done.statuses["Ssh_authorized_key[k]"].failed
    assert secret.read_text() == "ssh-rsa SECRET root\n"
    assert (secret.stat().st_mode & 0o777, secret.stat().st_uid) == (0o600, 0)


@needs_root
async def test_AG_05_a_hard_link_to_somebody_elses_file_is_not_read(tmp_path):
    account = pwd.getpwnam("nobody")
    tmp_path.chmod(0o755)
    secret = tmp_path / "shadow"
    secret.write_text("root:hash\n")
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, account.pw_uid, account.pw_gid)
    os.link(secret, home / "keys")
    key = SshAuthorizedKey("k", {"user": "nobody", "type": "rsa", "key": "AAAA", "target": str(home / "keys")})
    done = await apply(key, bucket=tmp_path / "bucket")
    assert any("hard link" in message for message in done.messages)
    assert (home / "keys").stat().st_uid == 0
    assert not (tmp_path / "bucket").exists()


async def test_aliases_of_two_kinds_replace_each_other(tmp_path):
    aliases = tmp_path / "aliases"
    aliases.write_text("list: a,\n  b\n")
    done = await apply(Mailalias("list", {"file": "/etc/list", "target": str(aliases)}), bucket=tmp_path / "bucket")
    assert aliases.read_text().endswith("list: :include: /etc/list\n")
    assert [event[0] for event in done.events] == ["file"]


async def test_a_host_has_a_key_of_each_type(tmp_path):
    known = tmp_path / "known"
    known.write_text("web ssh-rsa OLD\n")
    keys = [Sshkey("web@ssh-ed25519", {"key": "NEW", "target": str(known)}), Sshkey("w", {"name": "web", "type": "rsa", "key": "OLD"})]
    keys[1].assign("target", str(known))
    done = await apply(*keys, bucket=tmp_path / "bucket")
    assert known.read_text().splitlines()[3:] == ["web ssh-rsa OLD", "web ssh-ed25519 NEW"]
    assert [event[0] for event in done.events] == ["ensure"]


OPTIONS = [
    ("", []),
    ("no-pty", ["no-pty"]),
    ('no-pty,command="a, \\"b\\"",from="x"', ["no-pty", 'command="a, \\"b\\""', 'from="x"']),
]


@pytest.mark.parametrize(("text", "expected"), OPTIONS)
def test_options_of_keys_are_told_apart_outside_of_quotes(text, expected):
    assert options_of(text) == expected


def test_mount_points_are_read_from_what_mount_prints():
    assert mount_points_in("tmpfs on /a b type tmpfs (rw)\nproc on /proc type proc (rw)\n") == ["/a b", "/proc"]
    with pytest.raises(ResourceError, match="Could not understand"):
        mount_points_in("what is this")


@pytest.mark.parametrize("name", ["--bind", "-a", "/x\x1b[2J"])
def test_AG_08_a_mount_point_is_never_an_option(name):
    with pytest.raises(ResourceError):
        MountPoint(name, {"ensure": "mounted", "device": "d", "fstype": "ext4"})


# --- crontabs


@dataclass
class Shelf:
    """Crontabs in memory."""

    tables: dict[str, str] = field(default_factory=dict)
    broken: str = ""

    async def read(self, target):
        if target == self.broken:
            raise ResourceError(f"Could not read crontab for {target}: no")
        return self.tables.get(target, "")

    async def back_up(self, target):
        pass

    async def write(self, target, text, rights=None):
        self.tables[target] = text


async def crontab(shelf, resource, action="create"):
    provider = Crontab(CrontabFormat(), shelf, RunLog(), default_target="root")
    state = (await provider.prefetch({resource.key: resource})).get(resource.key, "unread")
    if state == "unread":
        await provider.retrieve(resource)
    if action == "create" and state is None:
        await provider.create(resource, None)
        await provider.flush(resource, None)
    return state


def body(text):
    return [line for line in text.splitlines() if "HEADER" not in line]


async def test_a_job_is_named_in_a_comment_and_has_its_settings_before_it():
    shelf = Shelf()
    await crontab(shelf, Cron("j", {"command": " /bin/x ", "user": "root", "hour": [1, "2-4"], "environment": ["A=1"]}))
    assert body(shelf.tables["root"]) == ["# Puppet Name: j", "A=1", "* 1,2-4 * * * /bin/x"]


async def test_a_time_zone_goes_to_the_top_of_a_crontab():
    shelf = Shelf({"root": "0 0 * * * /bin/x\nTZ=UTC\n"})
    await crontab(shelf, Cron("j", {"command": "/bin/y", "user": "root"}))
    assert shelf.tables["root"].startswith("TZ=UTC\n")


async def test_a_job_that_nobody_named_is_adopted_when_all_of_it_fits():
    shelf = Shelf({"root": "5 1 * * * /bin/x\n"})
    fitting = await crontab(shelf, Cron("j", {"command": "/bin/x", "minute": 5, "hour": 1, "user": "root"}))
    assert fitting["minute"] == ["5"]
    assert await crontab(Shelf(shelf.tables), Cron("j", {"command": "/bin/x", "minute": 6, "user": "root"}), action="") is None


async def test_a_crontab_that_cannot_be_read_is_not_written():
    shelf = Shelf({"root": "5 1 * * * /bin/x\n"}, broken="root")
    with pytest.raises(ResourceError, match="Could not read crontab"):
        await crontab(shelf, Cron("j", {"command": "/bin/y", "user": "root"}))
    assert shelf.tables["root"] == "5 1 * * * /bin/x\n"


async def test_the_header_that_cron_itself_writes_is_dropped():
    native = "# DO NOT EDIT THIS FILE - edit the master and reinstall.\n# (x)\n# (Cron version -- $Id: crontab.c,v 2.13 vixie Exp $)\n"
    shelf = Shelf({"root": native + "0 0 * * * /bin/x\n"})
    await crontab(shelf, Cron("j", {"command": "/bin/y", "user": "root"}))
    assert "DO NOT EDIT" not in shelf.tables["root"]
    assert "0 0 * * * /bin/x" in shelf.tables["root"]
