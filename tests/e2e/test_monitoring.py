"""The dashboard and the alert rules ask for nothing that a master does not tell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from master.observability.metrics import Metrics
from master.service.state_queue import StateQueue
from shared.state.database import StateDatabase
from tests.support.ports import reserved_port
from tests.support.processes import master

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "packaging" / "monitoring"
NAME = re.compile(r"\b(?:puppet|process)_[a-z_]+")
ONLY_WITHOUT_CA = {"puppet_crl_refreshed_seconds"}  # of masters that fetch the revocation list
HISTOGRAM = re.compile(r"_(bucket|count)$")


def rules() -> list[dict[str, str]]:
    groups = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    return found


def expressions() -> dict[str, str]:
    """Every expression, by the title of its alert or panel."""
    asked = {rule["alert"]: rule["expr"] for rule in rules()}
    for panel in panels():
        for target in panel["targets"]:  # type: ignore[attr-defined]
            asked[f"{panel['title']} {target['refId']}"] = target["expr"]
    return asked


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What a master tells that was just started, and what one adds whose state is in PostgreSQL."""
    with reserved_port() as port, master(tmp_path_factory.mktemp("site"), key_type="ec", metrics_port=str(port)) as process:
        process.write({"manifests/site.pp": ""})
        process.start()
        of_state = Metrics()
        StateQueue(StateDatabase.open("postgresql:///none"), None, ()).describe(of_state)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            yield answer.read().decode() + of_state.text()


@pytest.mark.parametrize("title", expressions())
def test_each_metric_of_an_expression_is_there_from_the_start(title: str, metrics: str) -> None:
    expression = expressions()[title]
    names = set(NAME.findall(expression))
    assert names or expression.startswith("up{")
    for name in names - ONLY_WITHOUT_CA:
        lines = [line for line in metrics.splitlines() if re.match(rf"{name}(\{{| )", line)]
        lines += [line for line in metrics.splitlines() if line.startswith(f"# TYPE {HISTOGRAM.sub('', name)} ")]
        assert lines, f"a master tells no {name}"


def test_each_alert_says_what_to_do() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules()) > 10
    for rule in rules():
        annotations: dict[str, str] = rule["annotations"]  # type: ignore[assignment]
        assert annotations["summary"] and annotations["action"].endswith("."), rule["alert"]


def test_no_panel_lies_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place: dict[str, int] = panel["gridPos"]  # type: ignore[assignment]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_itself_reads_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(FOLDER / "alerts.yaml")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
