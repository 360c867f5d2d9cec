"""Packages by a real `apt-get`, in the throw-away Debian of `sandbox.py`: several by one command, and a package manager in trouble."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.test_sandbox import in_sandbox, why_not

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

# more-1 to more-5; more-bad cannot be configured, more-slow takes an hour for it unless it finds /srv/hurry.
REPOSITORY = """
cd /srv/repo
for name in more-1 more-2 more-3 more-4 more-5 more-bad more-slow; do
  work=$(mktemp -d)
  chmod 755 "$work"
  mkdir -p "$work/DEBIAN" "$work/usr/share/$name"
  echo "$name" > "$work/usr/share/$name/name"
  printf 'Package: %s\\nVersion: 1.0-1\\nArchitecture: all\\nMaintainer: Nobody <nobody@example.com>\\n' "$name" > "$work/DEBIAN/control"
  echo "Description: a package for tests" >> "$work/DEBIAN/control"
  if [ "$name" = more-bad ]; then printf '#!/bin/sh\\nexit 1\\n' > "$work/DEBIAN/postinst"; chmod 755 "$work/DEBIAN/postinst"; fi
  if [ "$name" = more-slow ]; then
    printf '#!/bin/sh\\n[ -e /srv/hurry ] || sleep 3600\\n' > "$work/DEBIAN/postinst"; chmod 755 "$work/DEBIAN/postinst"
  fi
  dpkg-deb --root-owner-group -b "$work" "$name.deb" > /dev/null
  { dpkg-deb -f "$name.deb"; echo "Filename: ./$name.deb"; echo "Size: $(stat -c %s "$name.deb")"
    echo "SHA256: $(sha256sum "$name.deb" | cut -d' ' -f1)"; echo; } >> Packages
done
apt-get update -qq
rm -f /var/log/apt/history.log
"""
COMMANDS = "sed -n 's/^Commandline: .* install -- //p' /var/log/apt/history.log"
INSTALLED = "dpkg-query -W -f '${Package} ${db:Status-Status}\\n' 'more-*' 'pc-*' 2>/dev/null | grep ' installed' | cut -d' ' -f1"


def applied(manifest: str, runs: int = 1, setup: str = "", **case: Any) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The runs, what apt-get was told each time that it did something, and the packages that are installed now."""
    case |= {"setup": REPOSITORY + setup, "manifest": manifest, "runs": runs, "ask": [COMMANDS, INSTALLED]}
    found = in_sandbox(json.dumps(case).encode())
    return found["runs"], *(found["answers"][each].split("\n")[:-1] for each in (COMMANDS, INSTALLED))  # type: ignore[return-value]


def events(run: dict[str, Any], title: str) -> list[tuple[str, str]]:
    return [(event["status"], event["message"]) for event in run["resources"][f"Package[{title}]"].get("events", ())]


@pytest.mark.smoke
def test_neighbours_are_installed_by_one_command_and_stay() -> None:
    packages = (
        "package { ['more-1', 'more-2', 'pc-beta']: } package { 'pc-alpha': ensure => '1.0-1' } package { 'more-3': ensure => latest }"
    )
    (first, second), commands, installed = applied(f"{packages} notify {{ 'then': }} package {{ 'more-4': }}", runs=2)
    assert commands == ["more-1 more-2 pc-beta pc-alpha=1.0-1 more-3", "more-4"]
    assert installed == ["more-1", "more-2", "more-3", "more-4", "pc-alpha", "pc-beta"]
    for title in installed:
        assert events(first, title) == [("success", "created")]
        assert not events(second, title)


def test_a_package_that_cannot_be_had_fails_alone() -> None:
    (run,), commands, installed = applied("package { ['more-1', 'pc-broken', 'more-2', 'more-nosuch', 'more-3']: }")
    assert (commands, installed) == (["more-1", "more-2", "more-3"], ["more-1", "more-2", "more-3"])
    assert [events(run, title)[0][0] for title in ("more-1", "pc-broken", "more-2", "more-nosuch", "more-3")] == [
        "success", "failure", "success", "failure", "success"
    ]  # fmt: skip


def test_a_package_that_cannot_be_configured_leaves_the_others_created() -> None:
    (run,), commands, installed = applied("package { ['more-1', 'more-bad', 'more-2']: } notify { 'x': require => Package['more-bad'] }")
    assert commands[0] == "more-1 more-bad more-2" and installed == ["more-1", "more-2"]
    assert events(run, "more-1") == events(run, "more-2") == [("success", "created")]
    assert [status for status, _ in events(run, "more-bad")] == ["failure"]
    assert run["resources"]["Notify[x]"]["skipped"]


# Holds the lock of dpkg's front ends, as another package manager does, for three seconds from the start of the run on.
OTHER = """
cat > /srv/other <<'HOLD'
import fcntl, os, time
lock = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(lock, fcntl.LOCK_EX)
open("/srv/holding", "w").close()
time.sleep(3)
open("/srv/released", "w").close()
HOLD
printf '#!/bin/sh\nsetsid python3 /srv/other > /dev/null 2>&1 &\nwhile [ ! -e /srv/holding ]; do sleep 0.05; done\n' > /srv/hold
chmod +x /srv/hold
"""


def test_a_package_manager_that_is_busy_is_waited_for() -> None:
    manifest = "package { ['more-1', 'more-2']: } -> exec { '/usr/bin/test -e /srv/released': }"
    (run,), commands, installed = applied(manifest, setup=OTHER, args=["--prerun_command=/srv/hold"])
    assert (commands, installed) == (["more-1 more-2"], ["more-1", "more-2"])
    assert run["status"] == "changed"


def test_a_package_manager_that_hangs_ends_with_the_run_and_the_next_run_heals() -> None:
    """The limit is that of the whole run: nobody can say how long an installation may take."""
    manifests = ["package { ['more-1', 'more-slow']: }"] * 2
    (first, second), _, installed = applied(
        "", manifests=manifests, between="touch /srv/hurry; dpkg --configure -a", args=["--runtimeout=5"]
    )
    assert first["exit"] == 1
    assert any(message.endswith("did not complete within 5 seconds and was terminated.") for _, _, message in first["logs"])
    assert second["exit"] in (0, 2) and installed == ["more-1", "more-slow"]
