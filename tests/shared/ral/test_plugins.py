"""Types and providers of modules, in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ConfigError, ResourceError
from shared.ral import Platform, Providers
from shared.ral.plugins import plugin_providers, plugin_types

TYPE = '''
from collections.abc import Iterator
from pathlib import Path
from shared.ral import Param, Property, Ref, Type, ensurable

class DnsZone(Type, name="dnszone"):
    """Manage a DNS zone at a hosting provider."""

    ensure = ensurable()
    name = Param(str, namevar=True)
    email = Property(str, match=r".+@.+")
    yaml_fog_file = Param(Path, default=Path("/etc/puppet/fog.yaml"))

    def autorequire(self) -> Iterator[Ref]:
        yield Ref("file", str(self.yaml_fog_file))
'''
PROVIDER = """
from puppet_type_dnszone import DnsZone
from shared.ral import Provider

class Fog(Provider[DnsZone], type=DnsZone):
    async def prefetch(self, wanted):
        return {name: {"email": "a@b"} for name in wanted}
"""


def module(folder: Path, **files: str) -> Path:
    """A module's lib with `type_x` or `provider_x_y` as files."""
    for name, text in files.items():
        kind, _, rest = name.partition("_")
        path = folder / "puppet" / kind / (rest.replace("_", "/", 1) + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def test_a_modules_type_and_provider_are_used_like_builtin_ones(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE, provider_dnszone_fog=PROVIDER)
    types = plugin_types([lib])
    zone = types["dnszone"]("example.com", {"email": "c@d"})
    providers = Providers(plugin_providers([lib], types, {}), Platform())
    provider = providers.for_resource(zone)
    assert provider.name == "fog"
    assert await provider.retrieve(zone) == {"email": "a@b"}
    assert [str(ref) for ref in zone.autorequire()] == ["File[/etc/puppet/fog.yaml]"]


def test_a_changed_file_is_loaded_anew(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE)
    assert "comment" not in plugin_types([lib])["dnszone"].declaration.attributes
    module(tmp_path, type_dnszone=TYPE.replace("email = ", "comment = Property(str)\n    email = "))
    assert "comment" in plugin_types([lib])["dnszone"].declaration.attributes
    assert not list(tmp_path.rglob("__pycache__"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nosuchmodule", r"Could not load the type dnszone: ModuleNotFoundError: .*type/dnszone.py, line: 1\)"),
        ("def broken(:", r"Could not load the type dnszone: SyntaxError: invalid syntax \(file: .*dnszone.py, line: 1\)"),
        ("x = 1", "must define one subclass of Type, not 0"),
        (TYPE.replace('"dnszone"', '"other"'), "defines the type other, not dnszone"),
        (
            TYPE.replace("email = ", "serial = Property(str, match=r'[0-9')\n    email = "),
            r"The pattern /\[0-9/ of the attribute serial in .* is not valid",
        ),
    ],
)
def test_a_type_that_cannot_be_used_is_refused_by_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plugin_types([module(tmp_path, type_dnszone=text)])


def test_a_provider_that_wants_arguments_is_refused(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE, provider_dnszone_fog=PROVIDER + "\n    def __init__(self, zones): ...\n")
    makers = plugin_providers([lib], plugin_types([lib]), {})
    with pytest.raises(ConfigError, match="Could not make the provider of"):
        makers["dnszone"]()


def test_types_that_name_each_other_are_loaded_in_any_order_and_are_the_same_class(tmp_path: Path) -> None:
    first = "from puppet_type_dnszone import DnsZone\nfrom shared.ral import Param, Type\n"
    first += "class A(Type, name='a'):\n    name = Param(str, namevar=True)\n    base = DnsZone\n"
    types = plugin_types([module(tmp_path, type_dnszone=TYPE, type_a=first)])
    assert vars(types["a"])["base"] is types["dnszone"]


def test_a_broken_type_is_reported_and_the_others_are_loaded(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE, type_a="x = 1\n\nraise ValueError('no')\n", type_b="from puppet_type_a import x\n")
    broken: dict[str, str] = {}
    types = plugin_types([lib], on_broken=lambda name, err: broken.__setitem__(name, str(err)))
    assert list(types) == ["dnszone"]
    assert broken["a"] == f"Could not load the type a: ValueError: no (file: {lib}/puppet/type/a.py, line: 3)"
    assert broken["b"].endswith(f"(file: {lib}/puppet/type/a.py, line: 3)")


def test_only_types_that_are_asked_for_are_loaded(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE, type_a="raise SystemExit(3)")
    assert list(plugin_types([lib], names=frozenset({"dnszone"}))) == ["dnszone"]


def test_a_broken_provider_fits_nowhere_and_says_why(tmp_path: Path) -> None:
    lib = module(tmp_path, type_dnszone=TYPE, provider_dnszone_fog=PROVIDER, provider_dnszone_mist="import nosuchmodule")
    types = plugin_types([lib])
    broken: list[str] = []
    providers = Providers(plugin_providers([lib], types, {}, on_broken=lambda name, err: broken.append(name)), Platform())
    assert providers.for_resource(types["dnszone"]("a", {})).name == "fog"
    assert broken == ["dnszone/mist"]
    with pytest.raises(ResourceError, match="Provider mist is not functional on this host") as failure:
        providers.for_resource(types["dnszone"]("b", {"provider": "mist"}))
    assert "No module named 'nosuchmodule' (file: " in failure.value.hint
