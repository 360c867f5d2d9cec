"""Log lines as systemd's journal takes them."""

from __future__ import annotations

import logging
import socket
import struct
from pathlib import Path

from shared.process.journal import MAX_FIELD, JournalHandler, journal_datagram
from shared.process.log import LEVELS, ORIGIN, RequestOrigin, journal_fields


def unpacked(data: bytes) -> dict[str, str]:
    """The fields of a datagram."""
    found: dict[str, str] = {}
    while data:
        head, _, rest = data.partition(b"\n")
        name, equals, value = head.partition(b"=")
        if equals:
            data = rest
        else:
            (size,) = struct.unpack("<Q", rest[:8])
            value, data = rest[8 : 8 + size], rest[9 + size :]
        found[name.decode()] = value.decode()
    return found


def test_fields_of_one_and_of_several_lines_come_back() -> None:
    fields = {"MESSAGE": "one\ntwo=2\n", "PRIORITY": "3", "EMPTY": "", "ODD": "a=b ü"}
    assert unpacked(journal_datagram(fields)) == fields


def test_a_field_is_cut_so_that_the_datagram_can_be_sent() -> None:
    assert len(unpacked(journal_datagram({"MESSAGE": "x" * (MAX_FIELD + 1)}))["MESSAGE"]) == MAX_FIELD


def test_a_record_reaches_the_journal_with_its_level_and_its_request(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
        journal.bind(str(tmp_path / "journal"))
        journal.settimeout(5)
        handler = JournalHandler("puppet-master", journal_fields, tmp_path / "journal")
        record = logging.LogRecord("puppet.access", LEVELS["warning"], "x.py", 1, "said %s", ("no",), None)
        record.__dict__["fields"] = {"status": 403}
        token = ORIGIN.set(RequestOrigin("abc", "10.0.0.1"))
        handler.emit(record)
        ORIGIN.reset(token)
        handler.close()
        assert unpacked(journal.recv(65536)) == {
            "SYSLOG_IDENTIFIER": "puppet-master",
            "MESSAGE": "said no",
            "PRIORITY": "4",
            "PUPPET_SOURCE": "Puppet",
            "LOGGER": "puppet.access",
            "PUPPET_STATUS": "403",
            "PUPPET_REQUEST": "abc",
        }
