from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from environments.settings import environment_settings
from shared.data.durations import duration
from shared.errors import ConfigError
from shared.settings import (
    IGNORED_SETTINGS,
    AgentSettings,
    Conf,
    IgnoredSetting,
    MasterSettings,
    canonical,
    conf,
    flags_of,
    load,
    setting_text,
    unknown_settings,
)
from shared.settings.declarations import DeclaredSettings, setting
from shared.settings.in_manifests import values_in_manifests
from shared.settings.store import SERVING_DEFAULTS
from shared.settings.values import size


def agent(tmp_path: Path, text: str = "", **flags: Any) -> AgentSettings:
    (tmp_path / "puppet.conf").write_text(text)
    return load(AgentSettings, section="agent", flags={"confdir": str(tmp_path), **flags})


@pytest.mark.parametrize("text", ["plain", "Host:evil", "content-length:1", "a b:c", "x:a\r\nb"])
def test_extra_headers_are_checked(text: str) -> None:
    with pytest.raises(ConfigError, match="Could not set http_extra_headers: Invalid header"):
        load(AgentSettings, section="agent", flags={"http_extra_headers": text}, conf=Conf())
    given = load(AgentSettings, section="agent", flags={"http_extra_headers": "X-Site:Prague, y: 1"}, conf=Conf())
    assert given.http_extra_headers == ("X-Site:Prague", "y: 1")


def test_defaults_follow_the_directories(tmp_path: Path) -> None:
    settings = agent(tmp_path, certname="a.example.com", vardir="/v")
    assert settings.hostcert == tmp_path / "ssl/certs/a.example.com.pem"
    assert settings.lastrunfile == Path("/v/public/last_run_summary.yaml")
    assert settings.ca_port == settings.masterport == 8140


def test_root_and_other_users_have_their_own_directories(tmp_path: Path) -> None:
    root = load(AgentSettings, section="agent", conf=conf.Conf(), root=True)
    user = load(AgentSettings, section="agent", conf=conf.Conf(), root=False, home=tmp_path)
    assert (root.confdir, root.vardir) == (Path("/etc/puppet"), Path("/var/lib/puppet"))
    assert (user.confdir, user.vardir) == (tmp_path / ".puppet", tmp_path / ".puppet/var")


def test_an_account_that_passwd_does_not_have_lives_in_the_root_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 2)
    user = load(AgentSettings, section="agent", conf=conf.Conf(), root=False)
    assert (user.confdir, user.vardir) == (Path("/.puppet"), Path("/.puppet/var"))


def test_the_command_line_beats_the_section_beats_main(tmp_path: Path) -> None:
    text = "server = top\n[main]\nruninterval = 1h\nserver = main\n[agent]\nserver = section\n"
    assert agent(tmp_path, text).server == "section"
    assert agent(tmp_path, text, server="flag").server == "flag"
    assert agent(tmp_path, text).runinterval == 3600


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("server = a # no comment", "a # no comment"),
        ("server = 'quoted'", "quoted"),
        ('server="x"  ', "x"),
        ("server = a {owner = root, mode = 0640}", "a"),
        ("# server = b\nserver=c", "c"),
        ("server = $certname", "n"),
        ("server = x${certname}y", "xny"),
    ],
)
def test_a_value_is_read_as_puppet_reads_it(tmp_path: Path, text: str, expected: str) -> None:
    assert agent(tmp_path, text, certname="n").server == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[foo]\nserver = a", r"Illegal section 'foo' in config file \(file: .*puppet\.conf, line: 1\)"),
        ("server a", r"Could not match line 'server a' \(file: .*, line: 1\)"),
        ("[agent]\nruninterval = often", r"Could not set runinterval: Invalid duration format 'often'.*line: 2"),
        ("statedir = $nowhere/x", "Could not find value for \\$nowhere in the setting statedir"),
        ("statedir = $statedir", "refers to itself"),
        ("masterport = 99999", "Could not set masterport"),
        ("log_level = loud", "Could not set log_level"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        agent(tmp_path, text)


def test_a_setting_that_nothing_reads_gets_a_hint(tmp_path: Path) -> None:
    parsed = conf.parse("servr = x\n[agent]\nruninterval = 5", tmp_path / "puppet.conf")
    (found,) = unknown_settings(parsed, AgentSettings)
    assert "Unknown setting servr in [main]" in found and "Did you mean server?" in found


def test_a_setting_knows_whether_somebody_has_set_it(tmp_path: Path) -> None:
    settings = agent(tmp_path, "digest_algorithm = sha256\n[agent]\nserverport = 8140\n[master]\nenvironment = x\n", server="puppet")
    assert [settings.given(name) for name in ("digest_algorithm", "masterport", "server")] == ["sha256", 8140, "puppet"]
    assert settings.given("environment") is None and settings.given("ca_port") is None


@pytest.mark.parametrize("flags", [{}, {"bindaddress": "127.0.0.1"}, {"bindaddress": "127.0.0.1", "store_bindaddress": "::"}])
def test_a_store_listens_where_its_master_does_unless_it_has_an_address_of_its_own(flags: dict[str, str]) -> None:
    settings = load(MasterSettings, section="master", flags=flags, conf=Conf())
    assert settings.store_bindaddress == flags.get("store_bindaddress", flags.get("bindaddress", "0.0.0.0"))


@pytest.mark.parametrize(
    ("flags", "storeconfigs", "reports"),
    [
        ({}, False, ("store",)),
        ({"store": "sqlite"}, True, ("store", "puppetdb")),
        ({"store": "postgresql://bunraku@db/puppet", "reports": "none"}, True, ("puppetdb",)),
        ({"store": "puppetdb", "reports": "log,puppetdb"}, True, ("log", "puppetdb")),
        ({"storeconfigs": "true"}, True, ("store",)),
    ],
)
def test_a_store_gets_facts_catalogs_and_reports(flags: dict[str, str], storeconfigs: bool, reports: tuple[str, ...]) -> None:
    settings = load(MasterSettings, section="master", flags=flags, conf=Conf())
    assert (settings.storeconfigs, settings.reports) == (storeconfigs, reports)


@pytest.mark.parametrize(
    ("flags", "files", "store"),
    [
        ({}, [], "sqlite"),
        ({"reports": "store,log", "storeconfigs": "false", "facts_terminus": "json"}, [], "sqlite"),
        ({"store": "none"}, [], "none"),
        ({}, ["puppetdb.conf"], "none"),
        ({}, ["routes.yaml"], "none"),
        ({"storeconfigs": "true"}, [], "none"),
        ({"reports": "store, puppetdb"}, [], "none"),
        ({"catalog_terminus": "json"}, [], "none"),
        ({"catalog_cache_terminus": "yaml"}, [], "none"),
        ({"store": "sqlite", "storeconfigs": "true"}, ["puppetdb.conf"], "sqlite"),
    ],
)
def test_a_master_that_serves_has_a_store_unless_its_site_says_where_things_are_kept(
    tmp_path: Path, flags: dict[str, str], files: list[str], store: str
) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    everything = {"confdir": str(tmp_path), **flags}
    settings = load(MasterSettings, section="master", flags=everything, conf=Conf(), application=SERVING_DEFAULTS)
    assert (settings.store, settings.runs_store) == (store, store == "sqlite")


def test_newer_names_are_the_older_settings(tmp_path: Path) -> None:
    assert agent(tmp_path, "[agent]\nserverport = 9999").masterport == 9999
    assert load(MasterSettings, section="master", conf=conf.parse("[server]\nmasterport = 1")).masterport == 1


def test_options_are_settings_and_the_rest_is_left() -> None:
    flags, left = flags_of(["--server", "x", "--noop", "-t", "--no-daemonize", "word", "--masterport=1", "--", "--server"], AgentSettings)
    assert flags == {"server": "x", "noop": True, "daemonize": False, "masterport": "1"}
    assert left == ["-t", "word", "--", "--server"]


@pytest.mark.parametrize(("argv", "message"), [(["--noop=false"], "needless argument"), (["--server"], "missing argument")])
def test_a_wrong_option_is_an_error(argv: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        flags_of(argv, AgentSettings)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400), ("5y", 157680000), (7, 7)])
def test_durations_are_seconds(text: Any, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("64k", 65536), ("16MiB", 2**24), ("1 gib", 2**30)])
def test_sizes_are_bytes(text: str, count: int) -> None:
    assert size(text) == count


@pytest.mark.parametrize("text", ["", "-1", "1x", "1.5h", "m", "٣"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid duration format"):
        duration(text)


def test_changing_a_setting_keeps_comments_and_order() -> None:
    text = "# top\n[main]\n# about x\nx = 1\n\n[agent]\nserver = a\n"
    assert conf.with_setting(text, "main", "x", "2") == text.replace("x = 1", "x = 2")
    assert conf.with_setting(text, "main", "y", "3") == text.replace("x = 1\n", "x = 1\ny = 3\n")
    assert conf.with_setting(text, "user", "z", "4") == text + "[user]\nz = 4\n"
    assert conf.without_setting(text, "agent", "server") == (text.replace("server = a\n", ""), "server = a")
    assert conf.without_setting(text, "agent", "nothing") == (text, None)


def test_values_are_printed_as_config_print_shows_them() -> None:
    assert [setting_text(v) for v in (True, None, 5, ("a", "b"), (Path("/a"), Path("/b")), Path("/x"))] == [
        "true",
        "unlimited",
        "5",
        "a,b",
        "/a:/b",
        "/x",
    ]


@pytest.mark.parametrize("cls", [AgentSettings, MasterSettings])
def test_every_setting_says_what_it_is_for(cls: type[AgentSettings]) -> None:
    assert [name for name, field in cls.model_fields.items() if not (field.description or "").endswith(".")] == []


def test_settings_that_nothing_reads_may_stand_in_the_file_and_be_options(tmp_path: Path) -> None:
    text = "autoflush = false\nprivatedir = /private\n[agent]\nhostprivkey = $privatedir/key.pem\n"
    assert agent(tmp_path, text).hostprivkey == Path("/private/key.pem")
    assert unknown_settings(conf.parse(text), AgentSettings) == []
    flags, left = flags_of(["--no-autoflush", "--passfile", "/x", "--tasks", "word"], AgentSettings)
    assert flags == {"autoflush": False, "passfile": "/x", "tasks": True} and left == ["word"]


@pytest.mark.parametrize(
    ("section", "text", "message"),
    [
        (
            "master",
            "[master]\nserial = /elsewhere",
            r"Could not set serial to '/elsewhere': that is not supported here \(file: .*, line: 2\)",
        ),
        ("agent", "configprint = server", "Could not set configprint"),
    ],
)
def test_a_value_that_is_refused_is_named_with_its_place_and_a_way_out(section: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as failed:
        load(MasterSettings, section=section, conf=conf.parse(text, Path("/p.conf")))
    assert failed.value.hint


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("agent", "cakey = /elsewhere"),  # the master's business
        ("master", "cadir = /ca\nserial = /ca/serial\ncakey = $cadir/ca_key.pem"),
    ],
)
def test_a_refused_setting_may_say_what_holds_anyway(section: str, text: str) -> None:
    assert load(MasterSettings, section=section, conf=conf.parse(text)).masterport == 8140


@pytest.mark.parametrize("setting", IGNORED_SETTINGS.values(), ids=IGNORED_SETTINGS)
def test_every_setting_that_nothing_reads_says_why(setting: IgnoredSetting) -> None:
    assert setting.why.endswith(".") and setting.why[0] == setting.why[0].upper()


def test_no_setting_is_both_read_and_unread() -> None:
    assert set(IGNORED_SETTINGS).isdisjoint({*AgentSettings.model_fields, *MasterSettings.model_fields})


@pytest.mark.parametrize(("text", "nice"), [("", ""), ("high", -10), ("normal", 0), ("low", 10), ("idle", 19), ("-5", -5), ("7", 7)])
def test_a_priority_is_a_word_or_what_nice_takes(text: str, nice: int | str) -> None:
    assert load(AgentSettings, section="agent", flags={"priority": text}, conf=Conf()).priority == nice


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("priority", "urgent", "Could not set priority: Invalid priority format 'urgent'"),
        ("priority", "20", "Could not set priority: Invalid priority format '20'"),
        ("supported_checksum_types", "sha256,crc32", "Could not set supported_checksum_types: Invalid value 'crc32'"),
    ],
)
def test_a_value_that_does_not_fit_is_named(setting: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(AgentSettings, section="agent", flags={setting: value}, conf=Conf())


def test_ciphers_are_what_openssl_knows() -> None:
    assert load(AgentSettings, section="agent", flags={"ciphers": "ECDHE+AESGCM"}, conf=Conf()).ciphers == "ECDHE+AESGCM"
    with pytest.raises(ConfigError, match="Could not set ciphers: Invalid list of ciphers 'NOSUCH'"):
        load(AgentSettings, section="agent", flags={"ciphers": "NOSUCH"}, conf=Conf())


# The names that `puppet config print` of 7.23 knows.
PUPPETS = (Path(__file__).parents[1] / "data" / "settings-of-puppet-7.23.txt").read_text().split()
OF_ENVIRONMENTS = {"manifest", "modulepath"}  # in environment.conf, and refused in puppet.conf as Puppet does


def test_every_setting_of_puppet_is_read_or_said_to_have_no_effect() -> None:
    known = {*AgentSettings.model_fields, *MasterSettings.model_fields, *IGNORED_SETTINGS, *OF_ENVIRONMENTS}
    assert [name for name in PUPPETS if canonical(name) not in known] == []
    assert sorted(name for name in IGNORED_SETTINGS if name not in PUPPETS) == []


def test_paths_of_options_are_absolute_before_a_daemon_leaves_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags, _ = flags_of(["--confdir", "conf", "--environmentpath=$codedir/a:envs", "--certname", "web1"], AgentSettings)
    assert flags == {"confdir": f"{tmp_path}/conf", "environmentpath": f"$codedir/a:{tmp_path}/envs", "certname": "web1"}


def test_what_is_below_a_relative_path_is_absolute_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = conf.parse("vardir = data\nbasemodulepath = one:/two\nreportdir = kept/reports\n")
    settings = load(MasterSettings, section="master", flags={"confdir": "conf"}, conf=file, root=False, home=Path("/nonexistent"))
    assert settings.autosign == tmp_path / "conf/autosign.conf"
    assert settings.statedir == tmp_path / "data/state"
    assert settings.reportdir == tmp_path / "kept/reports"
    assert settings.basemodulepath == (tmp_path / "one", Path("/two"))


def test_modules_of_packages_come_last_where_they_are_and_nobody_sets_other_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, file = tmp_path / "debian", conf.parse("")
    installed.mkdir()

    def base(conf: Conf, **flags: str) -> tuple[Path, ...]:
        return load(MasterSettings, section="master", conf=conf, flags=flags).basemodulepath

    monkeypatch.setenv("BUNRAKU_PACKAGE_MODULES", f"{tmp_path}/missing:{installed}")
    assert base(file, codedir="/code") == (Path("/code/modules"), installed)
    assert base(file, basemodulepath="/one") == (Path("/one"),)
    assert base(conf.parse("basemodulepath = /two")) == (Path("/two"),)
    installed.rmdir()
    assert base(file, codedir="/code") == (Path("/code/modules"),)


@pytest.mark.parametrize("value", ["soon", "10 minutes", "-1"])
def test_a_timeout_of_environments_that_is_none_is_named_with_its_place(value: str) -> None:
    file = conf.parse(f"[main]\nenvironment_timeout = {value}\n", Path("/etc/puppet/puppet.conf"))
    with pytest.raises(ConfigError, match=r"^Could not set environment_timeout: .*\(file: /etc/puppet/puppet.conf, line: 2\)$"):
        load(MasterSettings, section="master", conf=file)
    assert load(MasterSettings, section="master", conf=conf.parse("environment_timeout = unlimited")).environment_timeout == "unlimited"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("masterport", " 12 ", 12),
        ("masterport", "+1_0", 10),
        ("masterport", "012.0", 12),
        ("masterport", 8.0, 8),
        ("maxwaitforcert", "unlimited", None),
        ("noop", "Yes", True),
    ],
)
def test_a_value_is_read_from_each_of_its_forms(name: str, text: Any, value: Any) -> None:
    assert getattr(load(AgentSettings, section="agent", flags={name: text}, conf=Conf()), name) == value


_NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("masterport", "x", _NO_INTEGER),
        ("masterport", "", _NO_INTEGER),
        ("masterport", "1.5", _NO_INTEGER),
        ("masterport", "1__0", _NO_INTEGER),
        ("masterport", "0x5", _NO_INTEGER),
        ("masterport", "٣", _NO_INTEGER),
        ("masterport", None, "Input should be a valid integer"),
        ("masterport", "9" * 5000, "Unable to parse input string as an integer, exceeded maximum size"),
        ("masterport", "99999", "Input should be less than or equal to 65535"),
        ("masterport", "-0", "Input should be greater than or equal to 1"),
        ("max_catalog_body", "0", "Input should be greater than 0"),
        ("server", 5, "Input should be a valid string"),
        ("environment_timeout", 5, "Input should be a valid string"),
        ("scheme", "c", "Input should be 'auto', 'a' or 'b'"),
        ("confdir", 5, "Input is not a valid path for <class 'pathlib.Path'>"),
        ("noop", "maybe", "Invalid value 'maybe' for a boolean; write true or false"),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_it_should_be(name: str, text: Any, message: str) -> None:
    with pytest.raises(ConfigError) as failed:
        load(AgentSettings, section="agent", flags={name: text}, conf=Conf())
    assert str(failed.value) == f"Could not set {name}: {message}"


def test_two_names_of_one_node_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^node_name_fact and node_name_value cannot both be set$"):
        load(AgentSettings, section="agent", flags={"node_name_fact": "fqdn", "node_name_value": "web1"}, conf=Conf())


def test_settings_are_frozen_and_copies_differ_only_in_what_was_asked() -> None:
    settings = load(AgentSettings, section="agent", flags={"server": "a"}, conf=Conf())
    with pytest.raises(AttributeError, match="settings are frozen"):
        settings.server = "b"
    with pytest.raises(AttributeError, match="settings are frozen"):
        del settings.server
    copy = settings.model_copy(update={"server": "b"})
    assert (copy.server, settings.server, copy.given("server")) == ("b", "a", "b")
    assert copy != settings and copy.model_copy(update={"server": "a"}) == settings


def test_settings_are_read_again_from_what_was_written_as_json() -> None:
    settings = load(MasterSettings, section="master", conf=Conf())
    assert MasterSettings.model_validate(json.loads(settings.model_dump_json())) == settings
    with pytest.raises(ConfigError, match="Extra inputs are not permitted"):
        MasterSettings.model_validate({**settings.model_dump(), "colour": "red"})


def test_no_password_is_among_what_settings_print() -> None:
    settings = load(MasterSettings, section="master", flags={"ldappassword": "hunter2"}, conf=Conf())
    assert "hunter2" not in repr(settings)


def test_a_setting_of_a_type_that_nothing_reads_is_refused_where_it_is_declared() -> None:
    body = {"__annotations__": {"colour": bool}, "colour": setting(False, doc="A plain boolean.")}
    with pytest.raises(TypeError, match="No setting is read as <class 'bool'>"):
        type("Painted", (DeclaredSettings,), body)


def test_manifests_see_the_settings_of_all_sections_that_count_for_the_process() -> None:
    text = (
        "[main]\nruninterval = 1h\nserver_list = a.example.com:8141,b\n[agent]\nserver = other\n[master]\nca_server = $server.example.com"
    )
    values = values_in_manifests(load(MasterSettings, section="master", conf=conf.parse(text), root=True), AgentSettings)
    assert (values["server"], values["ca_server"], values["runinterval"]) == ("puppet", "puppet.example.com", 3600)
    assert values["server_list"] == [["a.example.com", "8141"], ["b"]]
    assert (values["cakey"], values["genconfig"], values["max_errors"]) == ("/etc/puppet/ssl/ca/ca_key.pem", False, 10)
    assert (values["masterport"], values["serverport"]) == (8140, 8140)
    assert (values["node_terminus"], values["catalog_cache_terminus"]) == ("plain", None)


def test_manifests_see_no_password() -> None:
    text = "[main]\nhttp_proxy_password = hunter2\nldappassword = hunter2\nforge_authorization = hunter2\ndeploy_repository = https://a:hunter2@b/c\n"
    text += "http_extra_headers = authorization:hunter2\n"
    settings = load(MasterSettings, section="master", conf=conf.parse(text + "store = postgresql://a:hunter2@b/c"))
    assert "hunter2" not in repr(values_in_manifests(settings, AgentSettings))


def test_a_value_that_only_the_agent_would_refuse_is_its_text_in_manifests() -> None:
    settings = load(MasterSettings, section="master", conf=conf.parse("[main]\nruninterval = soon"))
    assert values_in_manifests(settings, AgentSettings)["runinterval"] == "soon"


def test_the_master_s_manifests_see_them_all() -> None:
    compiler = environment_settings(load(MasterSettings, section="master", conf=Conf(), flags={"confdir": "/c"})).compiler
    assert compiler.keys() >= MasterSettings.model_fields.keys() | AgentSettings.model_fields.keys() | IGNORED_SETTINGS.keys()
    assert (compiler["hostcrl"], compiler["hiera_config"], compiler["strict"]) == ("/c/ssl/crl.pem", "/c/hiera.yaml", "warning")
