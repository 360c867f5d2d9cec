"""Settings, single lines and pieces of files: the pure parts, and yum's repositories and Kerberos logins for real."""

from __future__ import annotations

import struct

import pytest

from agent.providers.augeas import library
from agent.providers.augeas.commands import compare_values, parse, parse_list, satisfies_clause
from agent.providers.concat_file.pieces import Piece, merge_pieces
from agent.providers.file_line.ruby import is_in_sync, split, with_line, without_line
from agent.providers.ini_setting.text import IniStyle, IniText
from agent.providers.ini_subsetting.words import Words
from agent.providers.k5login.k5login import K5loginFiles
from agent.providers.selboolean.getsetsebool import Getsetsebool, value_in
from agent.providers.selmodule.semodule import parse_list as modules
from agent.providers.selmodule.semodule import version_in
from agent.providers.yumrepo.inifile import Inifile
from shared.errors import ResourceError
from shared.types.augeas import Augeas
from shared.types.file_line import FileLine
from shared.types.ini_setting import IniSetting
from shared.types.k5login import K5login
from shared.types.selboolean import Selboolean
from shared.types.yumrepo import Yumrepo
from tests.agent.providers.recorded import Program
from tests.support.fake_commands import apply

# --- ini files

INI = "# head\ntop = 1\n\n[main]\n  a=1\n  ; b = 2\n\n[other]\nc = 3\n"
SET = [
    ("main", "a", "9", "  a=1", "  a=9"),
    ("main", "b", "2", "  ; b = 2", "  ; b = 2\n  b = 2"),
    ("main", "z", "0", "  ; b = 2", "  ; b = 2\n  z = 0"),
    ("", "top", "2", "top = 1", "top = 2"),
    ("", "new", "2", "top = 1", "top = 1\nnew = 2"),
    ("other", "c", "", "c = 3", "c = "),
]


@pytest.mark.parametrize(("section", "setting", "value", "old", "new"), SET)
def test_a_setting_is_changed_and_nothing_else(section, setting, value, old, new):
    text = IniText(INI)
    text.set(section, setting, value)
    assert str(text) == INI.replace(old, new)
    assert IniText(str(text)).get(section, setting) == value


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "b"),
        ({"value": ["a", "b"]}, "a"),
        ({"value": "b"}, "b"),
        ({"value": []}, "b"),
        ({"value": ["b", "a"]}, "b"),
        ({"value": ""}, ""),
    ],
)
async def test_a_setting_has_its_first_value_or_whatever_it_has(tmp_path, given, text):
    path = tmp_path / "x.ini"
    path.write_text("[s]\nx = b\n")
    await apply(IniSetting("x", {"ensure": "present", "path": str(path), "section": "s", "setting": "x", **given}))
    assert path.read_text() == f"[s]\nx = {text}\n"


def test_a_section_is_made_and_goes_with_its_last_setting():
    text = IniText(INI)
    text.set("new one", "x", "1")
    assert str(text) == INI + "\n[new one]\nx = 1\n"
    text.remove("new one", "x")
    assert str(text) == INI + "\n"
    text = IniText(INI)
    text.remove("other", "c")
    assert "[other]" not in str(text)


def test_a_section_that_has_settings_is_not_removed():
    with pytest.raises(ResourceError, match="still has settings: a"):
        IniText(INI).remove_section("main")


def test_separators_and_section_marks_may_be_others():
    text = IniText("-A-\nx 1\n", IniStyle(" ", "-", "-"))
    text.set("A", "x", "2")
    assert str(text) == "-A-\nx 2\n"


def words(value, **more):
    return Words.of(value, **{"separator": " ", "quote": "", "joiner": "", "exact": False} | more)


def test_words_of_a_setting_keep_their_quotes_and_places():
    value = words('"-a1 -c3"')
    value.set("-b", "2", "before", "-c")
    value.set("-a", "9")
    value.set("-d", "4", "index", "99")
    assert str(value) == '"-a9 -b2 -c3 -d4"'
    value.remove("-c")
    assert value.get("-c") is None
    assert value.get("-d") == "4"


def test_a_word_that_must_match_as_a_whole_is_not_the_beginning_of_another():
    value = words("-eagle", exact=True)
    assert value.get("-ea") is None


# --- single lines

LINES = [
    ({"line": "c"}, "a\nb", True, "a\nb\nc\n"),
    ({"line": "x=9", "match": "^x="}, "x=1\ny\n", True, "x=9\ny\n"),
    ({"line": "n", "after": "^\\[a\\]$"}, "[a]\nk\n", True, "[a]\nn\nk\n"),
    ({"line": "n", "after": "none"}, "[a]\n", True, "[a]\nn\n"),
    ({"line": "x=9", "match": "\\Ax=\\h+\\Z"}, "x=af\n", True, "x=9\n"),
    ({"line": "b"}, "a\r\nb\r\n", False, None),
]


@pytest.mark.parametrize(("given", "text", "missing", "after"), LINES)
def test_a_line_is_put_where_it_belongs(given, text, missing, after):
    resource = FileLine("x", {"path": "/x", **given})
    lines = split(text)
    assert is_in_sync(resource, lines) is not missing
    if missing:
        assert "".join(with_line(resource, lines)) == after


def test_lines_go_by_themselves_or_by_a_pattern():
    assert without_line(FileLine("x", {"path": "/x", "line": "a", "ensure": "absent"}), split("a\nab\n")) == ["ab\n"]
    many = FileLine("x", {"path": "/x", "match": "a", "match_for_absence": True, "ensure": "absent"})
    with pytest.raises(ResourceError, match="More than one line"):
        without_line(many, split("a\nab\n"))


def test_a_pattern_that_is_none_is_refused_when_the_catalog_is_read():
    with pytest.raises(ResourceError, match="match"):
        FileLine("x", {"path": "/x", "line": "a", "match": "("})


# --- pieces

PIECES = [Piece("10", "b", '{"l": [1], "h": {"x": 1}}'), Piece("9", "a", '{"l": [1, 2], "h": {"y": 2}}')]


def test_pieces_are_ordered_by_number_or_by_text():
    assert merge_pieces(PIECES, order="numeric", form="plain").startswith(PIECES[1].text)
    assert merge_pieces(PIECES, order="alpha", form="plain").startswith(PIECES[0].text)


def test_pieces_are_merged_by_format():
    assert merge_pieces(PIECES, order="numeric", form="json") == '{"l":[1,2],"h":{"y":2,"x":1}}'
    assert merge_pieces(PIECES, order="numeric", form="yaml") == '---\nl:\n- 1\n- 2\nh:\n  "y": 2\n  x: 1\n'
    with pytest.raises(ResourceError, match="Duplicate key 'a'"):
        merge_pieces([Piece("1", "a", '{"a": 1}'), Piece("2", "b", '{"a": 2}')], order="numeric", form="json")
    with pytest.raises(ResourceError, match="The piece a is not JSON"):
        merge_pieces([Piece("1", "a", "{")], order="numeric", form="json")


# --- augeas

COMMANDS = [
    ("set a/b 'two words'", ["set", "/p/a/b", "two words"]),
    ('set a[x = "y z"]/b c', ["set", '/p/a[x = "y z"]/b', "c"]),
    ("set $v/b c", ["set", "$v/b", "c"]),
    ("ins new before /files/x[1]", ["ins", "new", "before", "/files/x[1]"]),
    ("match *[a] size >= 2", ["match", "/p/*[a]", "size >= 2"]),
    ("get a == two words", ["get", "/p/a", "==", "two"]),
    ("clearm a/* b", ["clearm", "/p/a/*", "b"]),
]


@pytest.mark.parametrize(("line", "expected"), COMMANDS)
def test_commands_are_read_with_paths_quotes_and_brackets(line, expected):
    assert parse([line], "/p/") == [expected]


@pytest.mark.parametrize("line", ["frobnicate a", "set a", "set a]b c", "get a ~ b", "size x"])
def test_what_is_no_command_is_refused(line):
    with pytest.raises(ResourceError):
        parse([line], "")


def test_values_are_compared_as_numbers_when_both_are():
    assert compare_values("10", ">", "9")
    assert not compare_values("10", ">", "9x")
    assert compare_values("abc", "=~", "b.$")
    assert satisfies_clause(["a", "b"], ["size", "==", 2])
    assert satisfies_clause(["a", "b"], ["not_include", "c"])
    assert satisfies_clause(["a"], ["==", "['a']"])


def test_an_array_is_not_evaluated():
    with pytest.raises(ResourceError, match="Invalid array"):
        parse_list("__import__('os').getcwd()")


@pytest.mark.skipif(not library.available(), reason="libaugeas is not installed")
@pytest.mark.slow
async def test_augeas_changes_a_file_once_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "app.ini"
    path.write_text("[main]\na = 1\n")

    def resource():
        return Augeas("x", {"incl": str(path), "lens": "Puppet.lns", "changes": ["set main/a 5"]})

    done = await apply(resource())
    again = await apply(resource())
    assert path.read_text() == "[main]\na = 5\n"
    assert [event[2] for event in done.events] == ["executed successfully"]
    assert again.events == []
    assert [path.name for path in tmp_path.iterdir()] == ["app.ini"]


# --- yum


async def changed(provider, resource):
    state = (await provider.prefetch({resource.key: resource}))[resource.key]
    if resource.ensure == "absent":
        await provider.destroy(resource, state)
    elif state is None:
        await provider.create(resource, state)
    else:
        for declared in resource.declaration.properties:
            desired = resource.wanted(declared.name)
            if declared.name != "ensure" and desired and not declared.insync(resource, state, desired):
                await provider.set(resource, declared.name, desired[0], state)
    await provider.flush(resource, state)
    return state


async def test_a_repository_is_changed_where_it_stands(tmp_path):
    folder = tmp_path / "yum.repos.d"
    folder.mkdir()
    conf = tmp_path / "yum.conf"
    conf.write_text(f"[main]\nreposdir={folder}\n")
    base = folder / "CentOS.repo"
    base.write_text("# mine\n[base]\nname=Base\nenabled=1\nmirrorlist=http://m/\n\n[updates]\nname=Updates\n")
    desired = {"descr": "New", "enabled": "false", "mirrorlist": "absent", "baseurl": ["http://a/", "http://b/"]}
    await changed(Inifile(conf), Yumrepo("base", desired))
    assert base.read_text() == "# mine\n[base]\nname=New\nenabled=False\nbaseurl=http://a/ http://b/\n\n[updates]\nname=Updates\n"
    await changed(Inifile(conf), Yumrepo("epel", {"descr": "Extra", "priority": "-1"}))
    assert (folder / "epel.repo").read_text() == "[epel]\nname=Extra\npriority=-1\n"
    assert (await Inifile(conf).instances())["epel"] == {"ensure": "present", "descr": "Extra", "priority": "-1"}
    await changed(Inifile(conf), Yumrepo("epel", {"ensure": "absent"}))
    assert not (folder / "epel.repo").exists()


REFUSED = [
    {"enabled": "maybe"}, {"baseurl": "gopher://x/"}, {"metadata_expire": "soon"}, {"throttle": "9x"}, {"cost": "cheap"},
]  # fmt: skip


@pytest.mark.parametrize("given", REFUSED)
def test_values_that_yum_would_not_understand_are_refused(given):
    with pytest.raises(ResourceError):
        Yumrepo("x", given)


# --- the rest


async def test_principals_are_the_whole_file(tmp_path):
    path = tmp_path / ".k5login"
    path.write_text("old@X\n")
    resource = K5login(str(path), {"principals": ["a@X", "b@X"], "mode": "600"})
    provider = K5loginFiles()
    state = await provider.retrieve(resource)
    assert state == {"principals": ["old@X"], "mode": f"{path.stat().st_mode & 0o777:04o}"}
    await provider.set_principals(resource, ["a@X", "b@X"], state)
    assert path.read_text() == "a@X\nb@X\n"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_principals_are_brought_about_once_and_gone_with_their_file(tmp_path):
    path = tmp_path / ".k5login"
    parameters = {"principals": ["a@X", "b@X"], "mode": "640"}
    created, again = await apply(K5login(str(path), parameters)), await apply(K5login(str(path), parameters))
    assert created.messages == ["created"]
    assert again.events == []
    assert path.read_text() == "a@X\nb@X\n"
    assert path.stat().st_mode & 0o777 == 0o640
    await apply(K5login(str(path), {"ensure": "absent"}))
    assert not path.exists()


async def test_a_boolean_of_selinux_is_asked_for_and_set():
    provider = Getsetsebool()
    provider.getsebool = Program("getsebool", {"web_mail": "web_mail --> off\n"})
    provider.setsebool = program = Program("setsebool")
    for parameters in ({"value": "on"}, {"value": "on", "persistent": "true"}):
        resource = Selboolean("web_mail", parameters)
        state = await provider.retrieve(resource)
        assert state == {"value": "off"}
        await provider.set(resource, "value", "on", state)
    assert program.calls == ["web_mail on", "-P web_mail on"]


def test_what_selinux_tools_print_is_read():
    assert value_in("httpd_can_network_connect --> on\n") == "on"
    with pytest.raises(ResourceError, match="Invalid response"):
        value_in("getsebool: SELinux is disabled\n")
    assert modules("abrt\t1.4.1\nnewer\n") == {"abrt": "1.4.1", "newer": ""}


def test_the_version_of_a_policy_module_is_read_from_its_file():
    def block(data):
        return struct.pack("<I", len(data)) + data

    data = struct.pack("<III", 0xF97CFF8F, 1, 1) + b"\0" * 8 + block(b"ab") + block(b"cde") + b"\0" * 14 + block(b"name") + block(b"1.2.3")
    assert version_in(data, "x.pp") == "1.2.3"
    with pytest.raises(ResourceError, match="instead of magic"):
        version_in(b"\0" * 40, "x.pp")
    with pytest.raises(ResourceError, match="cut off"):
        version_in(data[:10], "x.pp")
