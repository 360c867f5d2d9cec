"""What modules bring besides manifests: types and functions, in Python or in Ruby."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles
from shared.errors import CompileError
from tests.support.compiling import compiled

PYTHON_FUNCTION = '''
from language.functions import Context, function

@function("m::greet", "String[1] name", "Integer times?", returns="String")
def greet(context: Context, name: str, times: int = 1) -> str:
    """A greeting."""
    return f"hello {name}" * times
'''


def test_a_module_s_function_in_python_is_called_as_any_other() -> None:
    result = compiled("notice(m::greet('x'))", {"modules/m/lib/puppet/functions/m/greet.py": PYTHON_FUNCTION})
    assert result.notices == ["hello x"]
    with pytest.raises(CompileError, match=r"'m::greet' parameter 'name' expects a String value, got Integer"):
        compiled("m::greet(1)", {"modules/m/lib/puppet/functions/m/greet.py": PYTHON_FUNCTION})


def test_a_global_function_of_any_module_is_found() -> None:
    text = PYTHON_FUNCTION.replace("m::greet", "greet")
    assert compiled("notice(greet('x'))", {"modules/m/lib/puppet/functions/greet.py": text}).notices == ["hello x"]


@pytest.mark.parametrize("path", ["lib/puppet/functions/old.rb", "lib/puppet/parser/functions/old.rb"])
def test_a_function_in_ruby_is_named_with_its_file(path: str) -> None:
    with pytest.raises(CompileError, match=rf"The function 'old' is written in Ruby \(/env/modules/m/{path}\)") as caught:
        compiled("old(1)", {f"modules/m/{path}": "# Ruby"})
    assert "lib/puppet/functions/old.py" in caught.value.hint


def test_a_function_s_file_that_does_not_load_is_named() -> None:
    with pytest.raises(CompileError, match=r"Could not load /env/modules/m/lib/puppet/functions/bad\.py: SyntaxError"):
        compiled("bad()", {"modules/m/lib/puppet/functions/bad.py": "def ("})


def test_a_type_in_ruby_that_cannot_be_read_may_be_declared_with_any_attribute() -> None:
    result = compiled(
        "firewall { '100 ssh': dport => 22, action => accept }\nFirewall['100 ssh'] -> Notify['x']\nnotify { 'x': }",
        {"modules/fw/lib/puppet/type/firewall.rb": "Puppet::Type.newtype(:firewall) { OPTIONS.each { |each| newparam(each) } }"},
    )
    assert result.parameters("Firewall[100 ssh]") == {"dport": 22, "action": "accept", "before": ["Notify[x]"]}
    assert result.resource("Firewall[100 ssh]")["kind"] == "compilable_type"


def test_a_type_in_python_has_its_attributes_checked(tmp_path: Path) -> None:
    lib = tmp_path / "modules/dns/lib/puppet/type"
    lib.mkdir(parents=True)
    (lib / "dnszone.py").write_text(
        "from shared.ral import Param, Property, Type\n\n"
        'class Dnszone(Type, name="dnszone"):\n    """A zone."""\n\n'
        '    name = Param(str, namevar=True, doc="Its name.")\n    email = Property(str, doc="Its administrator.")\n'
    )
    world = DirectoryEnvironment(Environment("production", str(tmp_path), (str(tmp_path / "modules"),), None), DiskFiles())
    world.code = "dnszone { 'example.com': email => 'a@b' }"
    assert compiled("", world=world).parameters("Dnszone[example.com]") == {"email": "a@b"}
    world.code = "dnszone { 'example.com': mail => 'a@b' }"
    with pytest.raises(CompileError, match="no parameter named 'mail'"):
        compiled("", world=world)
