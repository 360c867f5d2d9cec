"""The audit trail: what the CA did, and whom the master refused."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ca import audit
from shared.errors import ConfigError
from shared.process.log import ORIGIN, RequestOrigin

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def test_a_line_has_the_time_the_entry_and_who_asked(tmp_path: Path) -> None:
    trail = audit.Trail(tmp_path / "audit.json", now=lambda: NOON)
    trail.write(audit.entry("sign", "web1", by="admin\n", serial=7))
    token = ORIGIN.set(RequestOrigin("4fa1", "10.0.0.9"))
    trail.write(audit.entry("revoke", "web2", by="admin"))
    ORIGIN.reset(token)
    first, second = (tmp_path / "audit.json").read_text().splitlines()
    assert json.loads(first) == {
        "time": "2026-11-21T12:00:00.000+00:00",
        "action": "sign",
        "name": "web1",
        "by": "admin\n",
        "result": "done",
        "serial": 7,
    }
    assert json.loads(second) | {"from": "10.0.0.9", "request": "4fa1"} == json.loads(second)
    assert (tmp_path / "audit.json").stat().st_mode & 0o007 == 0


def test_a_trail_may_be_moved_away_at_any_time(tmp_path: Path) -> None:
    trail = audit.Trail(tmp_path / "audit.json")
    trail.write({"action": "sign"})
    (tmp_path / "audit.json").rename(tmp_path / "audit.json.1")
    trail.write({"action": "revoke"})
    assert "revoke" in (tmp_path / "audit.json").read_text()


def test_a_trail_that_cannot_be_written_is_an_error_before_and_no_end_after(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "audit.json").mkdir()
    trail = audit.Trail(tmp_path / "audit.json")
    with pytest.raises(ConfigError, match="Could not write the audit log"):
        trail.check()
    with caplog.at_level(logging.ERROR):
        trail.write({"action": "sign", "name": "web1"})
    assert '"name":"web1"' in caplog.text


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "audit.json").symlink_to(tmp_path / "elsewhere")
    audit.Trail(tmp_path / "audit.json").write({"action": "sign"})
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (audit.entry("create-ca", "CA: m", by="it", fingerprint="AA:BB"), "Made the CA 'CA: m' (fingerprint (SHA256) AA:BB, by it)"),
        (audit.entry("sign", "web1", by="root", not_after="2031"), "Signed the certificate of web1 (valid until 2031, by root)"),
        (audit.entry("request", "web1", by="x", result="refused: too many"), "request web1: refused: too many (by x)"),
        (audit.entry("delete", "web1", by="x", result="certificate"), "Removed the CA's files of web1 (by x)"),
        (audit.entry("delete", "w", by="x", result="nothing was there"), "Removed the CA's files of w: nothing was there (by x)"),
    ],
)
def test_the_log_has_a_sentence_and_the_entry_as_fields(entry: dict[str, object], text: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet.ca.audit")
    audit.to_log(entry)
    assert caplog.records[-1].getMessage() == text
    assert caplog.records[-1].fields == entry
