"""A node that goes by another name than its certificate: node_name_value and node_name_fact."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from shared.data import plainyaml
from tests.support.pair import NAME, Pair

pytestmark = pytest.mark.slow

OTHER = "web-1.example.com"
RULES = f"""\
path ~ ^/(catalog|node|report)/{OTHER.replace(".", "[.]")}$
allow {NAME}
"""
MANIFEST = """\
node 'web-1.example.com' {
  file { 'STAGE': content => "${trusted['certname']} ${trusted['hostname']} ${clientcert}\\n" }
}
node default { fail('asked about another node') }
"""


def pair_of(tmp_path: Path, rules: str = RULES) -> Pair:
    pair = Pair(tmp_path, manifest=MANIFEST.replace("STAGE", str(tmp_path / "stage")))
    pair.write("auth.conf", rules)
    pair.write("code/environments/production/modules/stage/facts.d/whoami.txt", f"whoami={OTHER}\n")
    return pair


@pytest.mark.parametrize("setting", [{"node_name_value": OTHER}, {"node_name_fact": "whoami"}], ids=lambda each: next(iter(each)))
async def test_it_is_asked_about_by_that_name_and_trusted_by_its_certificate(tmp_path: Path, setting: dict[str, str]) -> None:
    pair = pair_of(tmp_path)
    async with pair.mastered():
        ran = await pair.run(**setting)
    assert ran.code == 2
    asked = [line.split()[1] for line in ran.asked if line.split()[1].startswith(("/puppet/v3/node", "/puppet/v3/cat", "/puppet/v3/rep"))]
    assert asked == [f"/puppet/v3/{what}/{OTHER}" for what in ("node", "catalog", "report")]
    assert (tmp_path / "stage").read_text() == f"{NAME} {NAME.partition('.')[0]} {NAME}\n"
    assert ran.report is not None and ran.report.host == OTHER
    (report,) = (tmp_path / "master/var/reports" / OTHER).glob("*.yaml")
    assert plainyaml.loads(report.read_bytes(), aliases=True)["host"] == OTHER
    assert (tmp_path / "agent/var/client_data/catalog" / f"{OTHER}.json").exists()


@pytest.mark.parametrize("setting", [{"node_name_value": OTHER}, {"node_name_fact": "whoami"}], ids=lambda each: next(iter(each)))
async def test_its_cached_catalog_is_found_by_that_name(tmp_path: Path, setting: dict[str, str]) -> None:
    pair = pair_of(tmp_path)
    async with pair.mastered():
        await pair.run(**setting)
        (tmp_path / "stage").unlink()
        again = await pair.run(use_cached_catalog=True, **setting)
    assert again.code == 2 and (tmp_path / "stage").exists()
    assert [line for line in again.asked if "/catalog/" in line] == []


async def test_without_a_rule_the_master_refuses_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = pair_of(tmp_path, rules="")
    caplog.set_level(logging.INFO, "puppet")
    async with pair.mastered():
        ran = await pair.run(node_name_value=OTHER)
    assert ran.code == 1 and not (tmp_path / "stage").exists()
    assert f"POST /puppet/v3/catalog/{OTHER} 403" in ran.asked


async def test_a_fact_that_is_not_there_ends_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pair = pair_of(tmp_path)
    async with pair.mastered():
        ran = await pair.run(node_name_fact="nosuch")
    assert ran.code == 1
    assert "The fact nosuch does not name this node: there is no such fact" in caplog.text
    assert [line for line in ran.asked if "/catalog/" in line or "/node/" in line] == []
