"""README's commands on a bare Debian, with the packages that README names: the demo and tests without rights, a first run as root."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from demo.run import MASTER
from tests.gate import caches
from tests.support.bare import COPY, RELEASES, BareSystem, bare_system, why_not
from tests.support.documentation import block, blocks

DEMO, INSTALL, TESTS = 600, 1800, 5400  # seconds

pytestmark = [
    pytest.mark.full,
    pytest.mark.slow,
    pytest.mark.alone,  # some of the tests inside are
    pytest.mark.timeout(caches.TIMEOUT + COPY + 2 * DEMO + TESTS),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
def system(release: str) -> Iterator[BareSystem]:
    with bare_system(release) as system:
        yield system


@pytest.mark.parametrize("release", RELEASES)
def test_the_first_commands_of_readme_succeed_on_a_bare_debian(system: BareSystem) -> None:
    bodies = [each.body for each in blocks("README.md", "sh")]
    (then,) = (body for body in bodies if body.startswith("make demo && "))
    demo = then.partition(" && ")[0]
    (tests,) = (body.partition("#")[0].strip() for body in bodies if body.startswith("make test"))

    said = system.run(f"cd bunraku\n{demo}", timeout=DEMO)
    assert "Git is missing" not in said and "cannot be installed as it is" not in said and "Traceback" not in said, said
    headings = [line for line in said.splitlines() if line.startswith("== ")]
    assert headings[0] == f"== {MASTER}" and "$ puppet preview " in said, said
    (page,) = re.findall(r"Open the preview in a browser: file://(/\S+)$", said, re.MULTILINE)
    assert (system.root / page.removeprefix("/")).read_text().startswith("<!DOCTYPE html>")
    assert "Usage: puppet" in system.run(f"set -e\ncd bunraku\n{then}", timeout=DEMO)

    said = system.run(f"cd bunraku\n{tests}", timeout=TESTS)
    closing = re.findall(r"^.*\b\d+ (?:passed|failed|errors?)\b.* in [\d.]+s.*$", said, re.MULTILINE)
    assert closing and not any("failed" in line or "error" in line for line in closing), said
    assert "Git is not installed" not in said and "Ruby is not installed" in said, said


@pytest.mark.parametrize("release", RELEASES)
def test_a_master_runs_and_an_agent_applies_a_manifest_by_readme_alone(system: BareSystem) -> None:
    (install,) = (line for each in blocks("README.md", "sh") for line in each.body.splitlines() if line.startswith("make deb && "))
    (agent,) = (each.body for each in blocks("README.md", "sh") if "puppet cert sign" in each.body)
    (system.root / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
    system.run(f"apt-get update\ncd /home/{system.ACCOUNT}/bunraku\n{install}", account="root", timeout=INSTALL)
    script = f"""
hostname web1.example.com; echo 127.0.0.1 web1.example.com puppet.example.com >> /etc/hosts
{block("README.md", "sh", "start").body.strip()} > /tmp/master.log 2>&1 & master=$!
until grep -q 'Serving Puppet' /tmp/master.log; do kill -0 $master || {{ cat /tmp/master.log; exit 1; }}; sleep 0.2; done
set +e
{agent}
kill $master; wait $master; cat /tmp/master.log
"""
    said = system.run(script, account="root", lonely=True, timeout=DEMO)
    assert (system.root / "tmp/hello").read_text() == "hello\n" and "Traceback" not in said, said
