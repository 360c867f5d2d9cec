"""`puppet master --check`: a site with one thing wrong at a time, and what is said about it."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from master.cli import COMMAND, run_checks
from tests.support.needs import needs_root
from tests.support.processes import Done, MasterProcess, master
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MasterProcess]:
    """A site that was started once, with an agent's certificate; it is stopped."""
    with master(tmp_path_factory.mktemp("site"), key_type="ec") as process:
        process.write({"manifests/site.pp": "include m\n", "modules/m/manifests/init.pp": "class m { }\n"})
        process.start()
        assert process.puppet("cert", "generate", "agent1.test").code == 0
        wait_for_worker(process)
        process.stop()
        process.port = 0
        yield process


def wait_for_worker(process: MasterProcess) -> None:
    """Return when a compiling process has made the folder for compiled code."""
    wait_until((process.root / "var" / "code_cache").is_dir, describe=lambda: process.log)


@pytest.fixture
def site(whole: MasterProcess, tmp_path: Path) -> MasterProcess:
    """A copy of it, to be spoiled."""
    shutil.copytree(whole.root, tmp_path / "site", symlinks=True)
    return MasterProcess(tmp_path / "site", dict(whole.settings))


NOTICE = "The built-in store is off: store = none on the command line"
IN_ORDER = f"Notice (store): {NOTICE}\nNo problems found\n"


def checked(site: MasterProcess, *more: str) -> Done:
    return site.puppet("master", "--check", *more, "--masterport", "0")


def checked_here(site: MasterProcess, capsys: pytest.CaptureFixture[str]) -> Done:
    """The same as an object, without a process of its own."""
    options, flags = COMMAND.parse(["--check", "--json", *site.options, "--masterport", "0"])
    code = run_checks(flags, as_json=options.json)
    return Done(code, capsys.readouterr().out)


def snapshot(root: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in root.rglob("*")
    }


def test_a_site_in_order_is_said_to_be_and_nothing_is_touched(site: MasterProcess) -> None:
    before = snapshot(site.root)
    done = checked(site)
    assert (done.code, done.text) == (0, IN_ORDER)
    assert json.loads(checked(site, "--json").text) == {
        "ok": True,
        "findings": [{"area": "store", "severity": "notice", "message": NOTICE, "hint": ""}],
    }
    assert snapshot(site.root) == before


def test_a_site_that_was_never_started_is_in_order(tmp_path: Path) -> None:
    site = MasterProcess(tmp_path / "new")
    site.write({"manifests/site.pp": ""})
    done = checked(site)
    assert (done.code, done.text) == (0, IN_ORDER)
    assert not (tmp_path / "new" / "conf" / "ssl").exists()


@dataclass(frozen=True)
class Case:
    """What is spoiled, and what is said: area, severity, a part of the message, a part of the hint."""

    spoil: Callable[[MasterProcess], object]
    area: str
    severity: str
    message: str
    hint: str = ""


def conf(name: str, text: str) -> Callable[[MasterProcess], object]:
    return lambda site: (site.root / "conf" / name).write_text(text)


def site_file(name: str, text: str) -> Callable[[MasterProcess], object]:
    return lambda site: site.write({name: text})


def setting(**settings: str) -> Callable[[MasterProcess], object]:
    return lambda site: site.settings.update(settings)


def ssl(site: MasterProcess, name: str) -> Path:
    return site.root / "conf" / "ssl" / name


def renewed_key(site: MasterProcess) -> None:
    shutil.copy(ssl(site, "private_keys/agent1.test.pem"), ssl(site, "private_keys/localhost.pem"))


def another_certificate(site: MasterProcess) -> None:
    renewed_key(site)
    shutil.copy(ssl(site, "certs/agent1.test.pem"), ssl(site, "certs/localhost.pem"))


def revoked(site: MasterProcess) -> None:
    kept = ssl(site, "certs/localhost.pem").read_bytes()
    assert site.puppet("cert", "revoke", "--force", "localhost").code == 0
    ssl(site, "certs/localhost.pem").write_bytes(kept)


CASES = {
    "puppet.conf does not parse": Case(
        conf("puppet.conf", "[master]\nnonsense\n"), "configuration", "error", "Could not match line", "name ="
    ),
    "a bad value": Case(conf("puppet.conf", "[master]\ncompile_queue = many\n"), "configuration", "error", "Could not set compile_queue"),
    "an unknown setting": Case(conf("puppet.conf", "[master]\ncompile_ques = 3\n"), "configuration", "warning", "compile_ques in [master]"),
    "auth.conf": Case(conf("auth.conf", "path /x\nallow *\nnonsense\n"), "configuration", "error", "Invalid line 3"),
    "auth.conf of puppetserver": Case(
        conf("auth.conf", "authorization: { version: 1, rules: [{ name: mine }] }\n"),
        "configuration",
        "error",
        "The rule 'mine': the sort-order",
    ),
    "routes.yaml": Case(conf("routes.yaml", "master:\n  facts:\n    terminus: nowhere\n"), "configuration", "error", "no terminus nowhere"),
    "a report processor": Case(setting(reports="store,carve"), "configuration", "error", "carve"),
    "a classifier": Case(
        setting(node_terminus="exec", external_nodes="/nowhere/enc"), "configuration", "error", "external_nodes cannot be run", "absolute"
    ),
    "ruby": Case(setting(ruby="/nowhere/ruby"), "configuration", "error", "The program of ruby cannot be run", "absolute"),
    "autosign for all": Case(setting(autosign="true"), "configuration", "warning", "autosign is true"),
    "a key of another": Case(renewed_key, "certificates", "error", "Could not use the certificate", "belong together"),
    "a certificate of another": Case(another_certificate, "certificates", "error", "did not match server certificate", "dns_alt_names"),
    "a certificate that is revoked": Case(revoked, "certificates", "error", "is revoked"),
    "half a CA": Case(lambda site: (site.ca / "serial").unlink(), "certificates", "error", "is not whole", "backup"),
    "a serial of an old back-up": Case(
        lambda site: (site.ca / "serial").write_text("0001"), "certificates", "warning", "is 0001, which was used already", "back-up"
    ),
    "a CRL that is none": Case(lambda site: (site.ca / "ca_crl.pem").write_text("x"), "certificates", "error", "ca_crl.pem cannot be read"),
    "a key for all": Case(lambda site: (site.ca / "ca_key.pem").chmod(0o644), "permissions", "error", "open to everybody", "chmod 0640"),
    "code for all": Case(
        lambda site: (site.root / "conf" / "code").chmod(0o777), "permissions", "error", "is writable for all users", "o-w"
    ),
    "a manifest": Case(site_file("manifests/site.pp", "class {"), "environments", "error", "production/manifests/site.pp", "line 1"),
    "a module's manifest": Case(site_file("modules/m/manifests/init.pp", "class m { $x = }"), "environments", "error", "init.pp, line: 1"),
    "a template": Case(site_file("modules/m/templates/t.epp", "<% if { %>"), "environments", "error", "templates/t.epp", "line 1"),
    "hiera.yaml": Case(site_file("hiera.yaml", "version: 5\nhierarchy: no\n"), "environments", "error", "hiera.yaml"),
    "hiera.yaml of a module": Case(site_file("modules/m/hiera.yaml", "version: 7\n"), "environments", "error", "version 7"),
    "environment.conf": Case(site_file("environment.conf", "manifest\n"), "environments", "error", "Could not match line 'manifest'"),
    "a modulepath": Case(
        site_file("environment.conf", "modulepath = /nowhere\n"), "environments", "warning", "no folder of modules /nowhere"
    ),
    "an environment of a reserved name": Case(
        lambda site: (site.site.parent / "puppet").mkdir(), "environments", "warning", "not served, because its name is reserved", "URLs"
    ),
    "a cache of code that others may write": Case(
        lambda site: (site.root / "var" / "code_cache").chmod(0o777),
        "compiling",
        "warning",
        "code_cache, is not private",
        "takes time but fails no catalog",
    ),
    "puppetdb.conf": Case(conf("puppetdb.conf", "[main]\nserver_urls = x\n"), "configuration", "error", "must be https", "puppetdb.conf"),
    "a PuppetDB that nobody sends to": Case(conf("puppetdb.conf", ""), "store", "warning", "nothing is sent to a PuppetDB", "storeconfigs"),
    "a database of a store": Case(setting(store="sqlite:////nowhere/x/y"), "store", "error", "There is no folder /nowhere/x", "store"),
    "an address": Case(setting(bindaddress="192.0.2.1"), "ports", "error", "Cannot listen on 192.0.2.1"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_wrong_is_named_with_what_mends_it(site: MasterProcess, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.spoil(site)
    done = checked_here(site, capsys)
    plain = json.loads(done.text)
    found = [each for each in plain["findings"] if case.message in each["message"]]
    assert [(each["area"], each["severity"]) for each in found] == [(case.area, case.severity)], done.text
    assert case.hint in found[0]["hint"]
    assert done.code == (1 if case.severity == "error" else 0), done.text
    assert len([finding for finding in plain["findings"] if finding["severity"] != "notice"]) == 1, done.text


def test_a_port_that_somebody_has_is_named_and_that_of_a_running_master_is_not(site: MasterProcess) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        done = site.puppet("master", "--check", "--bindaddress", "127.0.0.1", "--masterport", port)
    assert done.code == 1
    assert f"Error (ports): Cannot listen on 127.0.0.1 port {port}: " in done
    try:
        before = site.log.count(NOTICE)
        site.start()
        assert site.log.count(NOTICE) == before + 1  # said before it serves
        running = site.puppet("master", "--check", "--bindaddress", "127.0.0.1", "--masterport", str(site.port))
        assert (running.code, running.text) == (0, IN_ORDER)
        assert site.stop() == 0
    finally:
        site.kill()


@needs_root
def test_what_the_masters_account_cannot_reach_is_named(site: MasterProcess, tmp_path: Path) -> None:
    site.settings["user"], site.settings["group"] = "nobody", "nogroup"
    (site.root / "conf").chmod(0o700)
    done = checked(site)
    assert done.code == 1
    assert f"Error (permissions): nobody cannot read {site.ca}/ca_key.pem\n" in done
    assert f"Error (permissions): nobody cannot write into {site.root}/var\n" in done
    empty = MasterProcess(tmp_path / "empty", {"user": "nobody", "group": "nogroup", "ssldir": str(tmp_path / "ssl")})
    empty.write({"manifests/site.pp": ""})
    (tmp_path / "ssl").mkdir()
    assert "cannot write" not in checked(empty).text  # the start hands it over


def test_json_is_an_option_of_the_check_only(site: MasterProcess) -> None:
    done = site.puppet("master", "--json")
    assert (done.code, "--json is an option of --check" in done) == (1, True)


def test_certificates_that_end_soon_are_warned_of(tmp_path: Path) -> None:
    with master(tmp_path / "site", key_type="ec", ca_ttl="6d") as site:
        site.write({"manifests/site.pp": ""})
        site.start()
        assert site.puppet("cert", "generate", "agent1.test").code == 0
        assert site.stop() == 0
        done = checked(site)
    assert done.code == 0
    assert "Warning (certificates): The CA's certificate 'Puppet CA: localhost' expires on " in done
    assert "Warning (certificates): The certificate of this master 'localhost' expires on " in done
    assert "Warning (certificates): Certificates of agents expire within 7 days: agent1.test\n" in done
    assert done.text.endswith("\n0 errors, 3 warnings\n")
