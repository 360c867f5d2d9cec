"""Our agent against our master in the URL scheme of 4 to 8: the whole conversation of a first and a second run."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from shared.data import plainjson, plainyaml
from tests.support.pair import NAME, Pair

pytestmark = pytest.mark.slow

BOOTSTRAP = [
    "GET /puppet-ca/v1/certificate/ca 200",
    "GET /puppet-ca/v1/certificate_revocation_list/ca 200",
    f"PUT /puppet-ca/v1/certificate_request/{NAME} 200",
    f"GET /puppet-ca/v1/certificate/{NAME} 200",
]
FIRST = [
    f"GET /puppet/v3/node/{NAME} 200",
    "GET /puppet/v3/file_metadatas/pluginfacts 200",
    "GET /puppet/v3/file_content/pluginfacts/outside.txt 200",
    "GET /puppet/v3/file_metadatas/plugins 200",
    "GET /puppet/v3/file_content/plugins/facter/from_python.py 200",
    "GET /puppet/v3/file_content/plugins/facter/only_ruby.rb 200",
    f"POST /puppet/v3/catalog/{NAME} 200",
    "GET /puppet/v3/file_content/modules/stage/plain.txt 200",
    "GET /puppet/v3/file_metadatas/modules/stage/tree 200",
    "GET /puppet/v3/file_content/modules/stage/tree/one 200",
    "GET /puppet/v3/file_content/modules/stage/tree/sub/two 200",
    f"PUT /puppet/v3/report/{NAME} 200",
]
SECOND = [
    "GET /puppet/v3/file_metadatas/pluginfacts 200",
    "GET /puppet/v3/file_metadatas/plugins 200",
    f"POST /puppet/v3/catalog/{NAME} 200",
    "GET /puppet/v3/file_metadatas/modules/stage/tree 200",
    f"PUT /puppet/v3/report/{NAME} 200",
]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


async def test_first_and_second_run_ask_what_the_protocol_says(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    async with pair.mastered():
        first = await pair.run()
        assert first.asked == BOOTSTRAP + FIRST, caplog.text
        assert first.code == 2
        assert first.connections(verified=False) == [1]
        # One connection with the CA's certificate until there is a CRL, one until there is our certificate, one for the run.
        assert first.connections(verified=True) == [1, 1, 1] + [1] * len(FIRST)
        assert [each.reused for each in first.exchanges[4:]] == [False] + [True] * (len(FIRST) - 1)
        assert pair.contents() == {
            "facts": f"python outside {NAME}\n",
            "plain": "plain\n",
            "refreshed": "",
            "tree/one": "1\n",
            "tree/sub/two": "2\n",
        }

        second = await pair.run()
        assert second.asked == SECOND, caplog.text
        assert second.code == 0
        assert set(second.connections(verified=True)) == {1}
        assert second.connections(verified=False) == []
    assert [step.name for step in second.steps] == ["certificates", "pluginsync", "facts", "catalog", "convert", "apply", "report"]


async def test_an_unchanged_run_of_many_sources_takes_four_requests(tmp_path: Path) -> None:
    """The master's catalog has the metadata; the cached one does not, as it would be old when it is applied."""
    stage = tmp_path / "stage"
    pair = Pair(
        tmp_path,
        manifest=f"file {{ '{stage}': ensure => directory }}\nInteger[1, 40].each |$i| "
        f'{{ file {{ "{stage}/${{i}}": source => "puppet:///modules/stage/many/${{i}}" }} }}',
    )
    for number in range(1, 41):
        pair.write(f"code/environments/production/modules/stage/files/many/{number}", f"{number}\n")
    async with pair.mastered():
        first, second = await pair.run(), await pair.run()
        assert (first.code, second.code) == (2, 0)
        assert [line.split()[0] for line in second.asked] == ["GET", "GET", "POST", "PUT"]
        cached = tmp_path / "agent" / "var" / "client_data" / "catalog" / f"{NAME}.json"
        assert plainjson.loads(cached.read_bytes()).get("metadata", {}) == {}
        (stage / "7").write_text("changed by hand\n")
        pair.write("code/environments/production/modules/stage/files/many/8", "newer\n")
        third = await pair.run()
    assert sorted(line.split()[1].rpartition("/")[2] for line in third.asked if "file_content" in line) == ["7", "8"]
    assert (stage / "7").read_text() + (stage / "8").read_text() == "7\nnewer\n"


async def test_the_requests_carry_what_the_protocol_says(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run()
    node = ran.find("/node/").target
    assert "environment=production" in node
    assert "transaction_uuid=" in node
    plugins = ran.find("/file_metadatas/pluginfacts").target
    for part in (
        "recurse=true",
        "links=follow",
        "max_files=-1",
        "source_permissions=use",
        "ignore=.svn&ignore=CVS",
        "checksum_type=sha256",
    ):
        assert part in plugins
    assert "/puppet/v3/catalog/agent1.test?environment=production" in ran.find("/catalog/").target


async def test_the_report_and_the_state_files_say_what_was_done(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run()
        assert len(pair.reports()) == 1
    assert ran.report is not None
    assert ran.report.status == "changed"
    stored = plainyaml.loads(pair.reports()[0].read_bytes(), aliases=True)
    assert stored["report_format"] == 12
    assert stored["host"] == NAME
    state = pair.root / "agent" / "var" / "state"
    summary = plainyaml.loads((state.parent / "public" / "last_run_summary.yaml").read_bytes())
    assert summary["application"] == {"run_mode": "agent", "initial_environment": "production", "converged_environment": "production"}
    assert summary["events"]["failure"] == 0
    assert {"node_retrieval", "plugin_sync", "fact_generation", "config_retrieval", "convert_catalog", "total"} <= set(summary["time"])
    assert "stage" in (state / "classes.txt").read_text().split()
    assert f"file[{pair.stage}/plain]" in (state / "resources.txt").read_text()
    assert (state / "last_run_report.yaml").stat().st_mode & 0o777 == 0o640
    cached = pair.root / "agent" / "var" / "client_data" / "catalog" / f"{NAME}.json"
    assert cached.stat().st_mode & 0o777 == 0o600
    assert not (state / "agent_catalog_run.lock").exists()


async def test_a_changed_file_is_backed_up_on_the_master_before_it_is_replaced(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run()
        (pair.stage / "plain").write_text("changed by hand\n")
        ran = await pair.run()
    bucket = [line for line in ran.asked if "file_bucket_file" in line]
    assert [line.split()[0] + line.split()[2] for line in bucket] == ["HEAD404", "PUT200"]
    assert "/file_bucket_file/sha256/" in bucket[0]
    assert pair.contents()["plain"] == "plain\n"
    assert ran.report is not None
    assert ran.report.corrective_change is True


async def test_a_run_against_an_environment_the_node_is_not_in_is_restarted_in_its_own(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    enc = tmp_path / "enc"
    enc.write_text("#!/bin/sh\necho '{environment: other, classes: [], parameters: {}}'\n")
    enc.chmod(0o755)
    pair.write("code/environments/other/manifests/site.pp", "notify { 'from other': }\n")
    async with pair.mastered(node_terminus="exec", external_nodes=str(enc)):
        ran = await pair.run()
        assert ran.report is not None
        assert ran.report.environment == "other"
        assert [each.target for each in ran.exchanges if "/catalog/" in each.target] == [f"/puppet/v3/catalog/{NAME}?environment=other"]
        # The node request is spared the next time: the last run's environments are remembered.
        again = await pair.run()
        assert not any("/node/" in line for line in again.asked)
        assert again.report is not None
        assert again.report.environment == "other"


async def test_a_noop_run_changes_nothing_and_caches_nothing(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(noop=True)
    assert ran.code == 0
    assert ran.report is not None
    assert (ran.report.status, ran.report.noop, ran.report.noop_pending) == ("unchanged", True, True)
    assert not pair.stage.exists()
    assert not (pair.root / "agent" / "var" / "client_data" / "catalog" / f"{NAME}.json").exists()


async def test_R_32_when_the_master_is_away_the_cached_catalog_is_applied_and_reported_as_such(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    async with pair.mastered():
        await pair.run()
    (pair.stage / "facts").unlink()
    ran = await pair.run()
    assert (pair.stage / "facts").exists()
    assert ran.code == 6  # the changed file, and sources that nobody serves
    assert ran.report is not None
    assert ran.report.cached_catalog_status == "on_failure"
    assert "Could not retrieve catalog from remote server" in caplog.text
    assert "Could not send report" in caplog.text
    refused = await pair.run(usecacheonfailure=False)
    assert refused.code == 1
    assert "Not using cache on failed catalog" in caplog.text


async def test_use_cached_catalog_asks_for_no_catalog(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run()
        ran = await pair.run(use_cached_catalog=True)
    assert ran.report is not None
    assert ran.report.cached_catalog_status == "explicitly_requested"
    assert [line for line in ran.asked if "modules/stage" not in line] == [f"PUT /puppet/v3/report/{NAME} 200"]


async def test_a_compile_error_is_shown_and_reported(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.write("code/environments/production/manifests/site.pp", "include nosuchclass\n")
    async with pair.mastered():
        ran = await pair.run()
        assert len(pair.reports()) == 1
    assert ran.code == 1
    assert "Could not find class ::nosuchclass" in caplog.text
    assert ran.report is not None
    assert ran.report.status == "failed"


async def test_a_run_draws_its_graphs_when_asked(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run(graph=True)
    drawn = pair.root / "agent/var/state/graphs"
    assert sorted(path.name for path in drawn.iterdir()) == ["expanded_relationships.dot", "relationships.dot", "resources.dot"]
    assert "Class[Stage]" in (drawn / "resources.dot").read_text()


async def test_what_reports_and_state_files_hold_can_be_limited(pair: Pair) -> None:
    async with pair.mastered():
        ran = await pair.run(exclude_unchanged_resources=True, write_catalog_summary=False)
        assert ran.report is not None
        assert "File[" in " ".join(ran.report.resource_statuses) and "Schedule[puppet]" not in ran.report.resource_statuses
        total = ran.report.metrics["resources"].number("total")
        assert total > len(ran.report.resource_statuses)
        assert not (pair.root / "agent/var/state/classes.txt").exists()
        ran = await pair.run(default_schedules=False)
        assert ran.report is not None
        assert "Schedule[puppet]" not in ran.report.resource_statuses
        assert ran.report.metrics["resources"].number("total") == total - 6
        assert (pair.root / "agent/var/state/classes.txt").exists()


async def test_facts_are_sent_again_after_a_run_that_wants_it(pair: Pair) -> None:
    async with pair.mastered():
        await pair.run()
        ran = await pair.run(resubmit_facts=True)
        assert ran.asked[-2:] == [f"PUT /puppet/v3/facts/{NAME} 200", f"PUT /puppet/v3/report/{NAME} 200"]
        assert ran.report is not None and "resubmit_facts" in [name for name, _, _ in ran.report.metrics["time"].values]


async def test_keys_and_certificates_are_where_the_settings_put_them(tmp_path: Path) -> None:
    places = {
        "certdir": tmp_path / "c",
        "privatekeydir": tmp_path / "k",
        "hostcrl": tmp_path / "crls" / "crl.pem",
        "ssl_lockfile": tmp_path / "l",
    }
    pair = Pair(tmp_path, flags={name: str(path) for name, path in places.items()})
    async with pair.mastered():
        first, second = await pair.run(), await pair.run()
    assert (first.code, second.code) == (2, 0)
    assert second.asked == SECOND
    assert {path.name for path in (tmp_path / "c").iterdir()} == {"ca.pem", f"{NAME}.pem"}
    assert (tmp_path / "k" / f"{NAME}.pem").exists() and (tmp_path / "crls" / "crl.pem").exists()
    assert not (tmp_path / "agent/ssl/private_keys").exists() and not (tmp_path / "agent/ssl/crl.pem").exists()
