"""Rules in puppetserver's form, decided by puppetserver's own code and by ours."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from certs.oids import OidNames
from master.authorization.auth_hocon import parse
from master.authorization.rules import AccessRequest, decide
from tests.master.authorization.puppetservers_rules import ADMIN, ALIAS, ASKED, BAD, GOOD, OTHER, RULES, STRANGER, WEB, Asking, Parameters
from tests.master.authorization.test_auth_hocon import client_of, one_rule
from tests.support.processes import clean_environment

JAR = Path("/usr/share/puppetserver/puppetserver.jar")
DEBIANS = Path("/etc/puppet/puppetserver/conf.d/auth.conf")

pytestmark = [
    pytest.mark.works_with("Authorization rules of Puppet", "auth.conf of puppetserver, compared with its own implementation"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(not JAR.exists() or shutil.which("java") is None, reason="puppetserver is not installed"),
]

# Reads {file: [questions]} as JSON and prints {file: [answers, or the error of the file]}.
PROGRAM = """
(require '[cheshire.core :as json]
         '[puppetlabs.config.typesafe :as typesafe]
         '[puppetlabs.trapperkeeper.authorization.rules :as rules]
         '[puppetlabs.trapperkeeper.services.authorization.authorization-core :as core])

(def oids {"1.3.6.1.4.1.34380.1.1.5" :pp_cost_center, "1.3.6.1.4.1.34380.1.1.13" :pp_role})

(defn answer [rules {:strs [url method query name extensions dns]}]
  (let [request {:uri url :request-method (keyword method) :remote-addr "10.1.2.3" :query-params query
                 :authorization {:name name :authenticated (not= "" name)
                                 :extensions (cond-> (into {} (map (fn [[k v]] [(keyword k) v]) extensions))
                                               (seq dns) (assoc :subject-alt-name {:dns-name dns}))}}]
    (:authorized (rules/allowed? request rules oids nil))))

(defn answers [[file questions]]
  (try
    (let [config (core/validate-auth-config! (:authorization (typesafe/config-file->map file)))
          rules (core/transform-config (:rules config))]
      [file (mapv #(answer rules %) questions)])
    (catch Throwable error [file (str "error: " (:msg (ex-data error) (.getMessage error)))])))

(println (json/generate-string (into {} (map answers (json/parse-string (slurp *in*))))))
"""


def theirs(tmp_path: Path, asked: dict[Path, list[dict[str, Any]]]) -> dict[Path, Any]:
    """What puppetserver's code answers for each file."""
    (tmp_path / "program.clj").write_text(PROGRAM)
    command = ["java", "-cp", str(JAR), "clojure.main", str(tmp_path / "program.clj")]
    questions = json.dumps({str(path): each for path, each in asked.items()})
    environ = clean_environment(HOME=str(tmp_path))
    done = subprocess.run(command, input=questions, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {Path(path): each for path, each in json.loads(done.stdout.strip().splitlines()[-1]).items()}


def as_data(method: str, url: str, query: Parameters, who: Asking) -> dict[str, Any]:
    return {"method": method, "url": url, "query": query, "name": who.name, "extensions": who.extensions, "dns": who.dns}


@pytest.mark.smoke
def test_our_rules_decide_as_puppetservers_do(tmp_path: Path) -> None:
    """The cases of the unit tests are right, bad files are bad there too, and Debian's own file says the same to everybody."""
    (tmp_path / "rules.conf").write_text(RULES)
    urls = [
        "/puppet/v3/catalog/web1.example.com", "/puppet/v4/catalog", "/puppet-ca/v1/certificate/x", "/puppet-ca/v1/certificate_request/x",
        "/puppet-ca/v1/certificate_revocation_list/ca", "/puppet-ca/v1/certificate_revocation_list", "/puppet-ca/v1/certificate_status/x",
        "/puppet-ca/v1/certificate_statuses/x", "/puppet-ca/v1/clean", "/puppet-ca/v1/expirations", "/status/v1/simple/ca",
        "/puppet/v3/environments", "/puppet/v3/file_bucket_file/md5/x", "/puppet/v3/file_content/modules/a/b",
        "/puppet/v3/file_metadatas/plugins", "/puppet/v3/node/web1.example.com", "/puppet/v3/report/web1.example.com",
        "/puppet/v3/facts/web1.example.com", "/puppet/v3/static_file_content/modules/a/files/b", "/puppet/v3/tasks", "/elsewhere",
    ]  # fmt: skip
    matrix = [(m, u, {}, w) for u in urls for m in ("get", "put", "post", "delete", "head") for w in (WEB, OTHER, STRANGER, ADMIN, ALIAS)]
    asked = {
        tmp_path / "rules.conf": [as_data(*each[:4]) for each in ASKED],
        DEBIANS: [as_data(*each) for each in matrix],
    }
    bad = {tmp_path / f"bad{number}.conf": GOOD.replace(*change[:2]) for number, change in enumerate(BAD)}
    for path, rule in bad.items():
        path.write_text(one_rule(rule))
        asked[path] = []
    said = theirs(tmp_path, asked)

    assert said[tmp_path / "rules.conf"] == [expected for *_, expected in ASKED]
    rules = parse(DEBIANS.read_text(), "auth.conf", OidNames())
    ours = [
        decide(rules, AccessRequest((), "find", None, client_of(who), url, method, query)).allowed for method, url, query, who in matrix
    ]
    assert [each for each in zip(matrix, ours, said[DEBIANS], strict=True) if each[1] != each[2]] == []
    assert sum(ours) > 50
    assert {path: said[path] for path in bad if not str(said[path]).startswith("error: ")} == {}
