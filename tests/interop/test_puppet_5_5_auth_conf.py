"""auth.conf as Puppet 5.5.22 has it, which names the later URLs: whom its own master lets in beside whom ours does."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from pathlib import Path

import pytest

from tests.interop.pairs import Pair, pair
from tests.interop.peers import PUPPET_5
from tests.interop.stage import SITE

pytestmark = [
    pytest.mark.works_with("Authorization rules of Puppet", "auth.conf of 5.5.22"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(PUPPET_5.why_not()), reason=PUPPET_5.why_not()),
]

NAMES = ("web1.example.com", "admin.example.com")
SHIPPED = PUPPET_5.image / "etc/puppet/auth.conf"
OF_A_SITE = """
path /puppet/v3/facts
method find, search
allow admin.example.com

path ~ ^/puppet/v3/catalog/([^/]+)$
method find
allow $1, admin.example.com

path /puppet-ca/v1/certificate_status
method find, search, save, destroy
auth yes
allow *.example.org, admin.example.com

path /puppet/v3/file_content/modules/stage/tree
deny web1.example.com
allow *

path ~ ^/puppet/v3/node/
environment production
allow admin.example.com
"""
ASKED = (
    *(("GET", f"/puppet/v3/{each}/web1.example.com") for each in ("node", "catalog", "facts", "status")),
    *(("GET", f"/puppet/v3/{each}/admin.example.com") for each in ("node", "catalog", "facts")),
    *(("PUT", f"/puppet/v3/{each}/web1.example.com") for each in ("facts", "report")),
    ("GET", "/puppet/v3/environments"),
    *(("GET", f"/puppet/v3/{each}/modules/stage/plain.txt") for each in ("file_metadata", "file_content")),
    ("GET", "/puppet/v3/file_content/modules/stage/tree/a"),
    ("GET", "/puppet/v3/file_metadatas/plugins?recurse=true"),
    ("HEAD", "/puppet/v3/file_bucket_file/md5/00000000000000000000000000000000"),
    *(("GET", f"/puppet-ca/v1/certificate/{each}") for each in ("ca", "web1.example.com")),
    ("GET", "/puppet-ca/v1/certificate_revocation_list/ca"),
    ("GET", "/puppet-ca/v1/certificate_request/web1.example.com"),
    ("GET", "/puppet-ca/v1/certificate_status/nobody.example.com"),
    ("GET", "/puppet-ca/v1/certificate_statuses/any"),
)

# What the defaults of later servers, which stand behind a site's rules, give besides. Agents since 6.4 ask for the list before they
# have a certificate, and none of those could be added to a site that keeps its file.
LATER = {
    ("a stranger", "GET", "/puppet-ca/v1/certificate_revocation_list/ca"),
    ("web1.example.com", "PUT", "/puppet/v3/facts/web1.example.com"),
}


def refused(here: Pair, name: str | None, method: str, path: str) -> bool:
    """Whether that request of `name`, or of a stranger, is denied; every other answer means that it was let in."""
    place = here.master.ca.parent
    context = ssl.create_default_context(cafile=str(place / "certs/ca.pem"))
    if name:
        context.load_cert_chain(place / f"certs/{name}.pem", place / f"private_keys/{name}.pem")
    connection = http.client.HTTPSConnection("localhost", here.master.port, context=context, timeout=60)
    with contextlib.closing(connection):
        url = f"{path}{'&' if '?' in path else '?'}environment=production"
        body = b"{}" if method == "PUT" else None
        connection.request(method, url, body, {"Accept": "application/json, text/plain, */*", "Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 403


def decisions(kind: str, root: Path, text: str) -> dict[tuple[str, str, str], bool]:
    root.mkdir()
    with pair(kind, root / "master", autosign="false") as here:
        here.write({**SITE, "manifests/site.pp": "notice('compiled')\n"})
        (here.master.root / "conf").mkdir(exist_ok=True)
        (here.master.root / "conf/auth.conf").write_text(text)
        here.master.start()
        for name in NAMES:
            assert here.cert("generate", name).code == 0
        return {(name or "a stranger", *asked): refused(here, name, *asked) for name in (*NAMES, None) for asked in ASKED}


@pytest.mark.parametrize("text", [SHIPPED.read_text() if SHIPPED.exists() else "", OF_A_SITE], ids=["shipped", "of-a-site"])
def test_the_same_file_lets_the_same_in(tmp_path: Path, text: str) -> None:
    theirs = decisions("5.5 with 5.5", tmp_path / "theirs", text)
    ours = decisions("5.5 with ours", tmp_path / "ours", text)
    assert {each: denied for each, denied in ours.items() if denied != theirs[each] and (denied or each not in LATER)} == {}
    assert 0 < sum(ours.values()) < len(ours)
