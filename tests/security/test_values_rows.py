"""The row of values on their way into commands and queries: each is one argument, or one bound value."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from master.termini.ldap import Ldap, LdapSearch, LdapServer
from master.termini.node import Classifier
from shared.indirector import Binding
from shared.models.node import NODE
from shared.types.exec import Exec
from tests.support.compiling import compiled
from tests.support.fake_commands import apply
from tests.support.imports import PACKAGES

ROOT = Path(__file__).parent.parent.parent
SOURCES = [path for package in PACKAGES if package not in ("httpd", "store") for path in sorted((ROOT / package).rglob("*.py"))]
VALUES = [
    "x; touch MARK",
    "$(touch MARK)",
    "`touch MARK`",
    "-n",
    "--help",
    "a\ntouch MARK",
    "x | touch MARK",
    "x && touch MARK",
    "'; touch MARK; '",
    '"; touch MARK; "',
    "*",
    "~root",
    "${PATH}",
    "%s %n",
    "\\$(touch MARK)",
    'facts.x" ; drop table',
    "> MARK",
]


@pytest.mark.parametrize("value", VALUES)
async def test_CMP_12_a_class_parameter_is_one_argument_of_a_command(value: str, tmp_path: Path) -> None:
    mark = tmp_path / "pwned"
    value = value.replace("MARK", str(mark))
    manifest = "class m ($value) { exec { 'say': command => ['/usr/bin/printf', '<%s>', $value], logoutput => true } }"
    catalog = compiled(manifest, classes={"m": {"value": value}})
    given = catalog.parameters("Exec[say]")
    assert given["command"] == ["/usr/bin/printf", "<%s>", value]
    done = await apply(Exec("say", given))
    assert "\n".join(done.messages).startswith(f"<{value}>"), done.messages
    assert not mark.exists()


@pytest.mark.parametrize("value", VALUES)
async def test_CMP_12_a_nodes_name_is_the_last_argument_of_the_classifier(value: str, tmp_path: Path) -> None:
    mark, seen = tmp_path / "pwned", tmp_path / "seen"
    program = tmp_path / "enc"
    program.write_text(f'#!/bin/sh\nprintf "%s" "$#|$1" > {seen}\necho "classes: []"\n')
    program.chmod(0o755)
    value = value.replace("MARK", str(mark))
    terminus: Any = Classifier([str(program)])
    try:
        await terminus.output(value)
    except Exception as err:
        assert value.startswith("-"), err
    else:
        assert seen.read_text() == f"1|{value}"
    assert not mark.exists()


FILTERS = ["*", "a)(cn=*", "*)(objectclass=*", "a\\2a", "a\0", "(", ")", "\\", "a)(|(cn=b", "é*"]


@pytest.mark.parametrize("name", FILTERS)
async def test_CMP_12_a_name_in_a_query_of_the_directory_is_only_ever_a_value(name: str) -> None:
    ldap3 = pytest.importorskip("ldap3")
    asked: list[str] = []

    class Directory(Ldap):
        """Keeps the filters it would send, and knows nobody."""

        def _connection(self, refused: Any) -> Any:
            made = super()._connection(refused)
            search = made.search

            def kept(base: str, filter_: str, **options: Any) -> Any:
                asked.append(filter_)
                return search(base, filter_, **options)

            made.search = kept
            made.strategy.add_entry("cn=victim,ou=Hosts", {"objectclass": "puppetClient", "cn": "victim"})
            return made

    entries = LdapSearch("ou=Hosts", "(&(objectclass=puppetClient)(cn=%s))", ("puppetclass",), "parentnode")
    terminus = Directory(LdapServer("x", 389), entries, strategy=ldap3.MOCK_SYNC)
    assert await Binding(NODE, terminus).find(name) is None
    (sent,) = asked
    assert sent.startswith("(&(objectclass=puppetClient)(cn=") and sent.endswith("))")
    value = sent.removeprefix("(&(objectclass=puppetClient)(cn=").removesuffix("))")
    assert not set(value) & set("*()\0"), sent


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls in a module, by the dotted name of what is called."""
    return [(ast.unparse(node.func), node) for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]


@pytest.mark.slow
def test_CMP_12_nothing_hands_a_line_to_a_shell_and_there_is_no_query_store() -> None:
    found = []
    for path in SOURCES:
        for name, call in calls(path):
            shell = any(
                each.arg == "shell" and not (isinstance(each.value, ast.Constant) and not each.value.value) for each in call.keywords
            )
            if name.endswith("create_subprocess_shell") or name in ("os.system", "os.popen") or (shell and name.startswith("subprocess.")):
                found.append(f"{path}:{call.lineno}")
    assert found == []
    stores = ("sqlite3", "psycopg", "psycopg2", "sqlalchemy", "MySQLdb", "pymysql")
    using = [path.relative_to(ROOT) for path in SOURCES if any(f"import {store}" in path.read_text() for store in stores)]
    # One has waits end, the other sends one statement, LISTEN.
    assert list(map(str, using)) == ["shared/database/postgresql.py", "shared/state/notices.py"]


def _unanchored(call: ast.Call) -> bool:
    """Whether a pattern ends in `$`, before which a newline may still stand; `\\Z` and fullmatch have no such gap."""
    pattern = call.args[0] if call.args else None
    if isinstance(pattern, ast.JoinedStr) and pattern.values:
        pattern = pattern.values[-1]
    if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
        return False
    text = pattern.value.rstrip()
    return text.endswith("$") and not text.endswith("\\$") and "MULTILINE" not in ast.unparse(call)


@pytest.mark.slow
def test_CMP_12_no_check_ends_in_a_dollar_sign() -> None:
    checks = ("re.match", "re.compile", "re.fullmatch")
    assert [f"{path}:{call.lineno}" for path in SOURCES for name, call in calls(path) if name in checks and _unanchored(call)] == []
    assert _unanchored(calls_in("re.match(r'^[a-z]+$', name)")) and not _unanchored(calls_in(r"re.match(r'[a-z]+\Z', name)"))


def calls_in(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node
