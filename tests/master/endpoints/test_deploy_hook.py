"""The web hook: a push by somebody who knows the secret is queued, everything else is refused or ignored."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from master.endpoints.deploy import Push, is_authentic, push_of, read_secret
from master.service.deployments import DeploymentQueue, deploy_by_program
from shared.errors import BadRequest, ConfigError, Conflict, PuppetError, Unavailable
from shared.names import quoted_for_log
from shared.settings import MasterSettings, load

SECRET = b"It's a Secret to Everybody"
BODY = b"Hello, World!"
SIGNATURE = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"  # as in GitHub's documentation

HEADERS: Mapping[str, tuple[Mapping[str, str], bool]] = {
    "GitHub": ({"X-Hub-Signature-256": f"sha256={SIGNATURE}"}, True),
    "Gitea": ({"x-gitea-signature": SIGNATURE}, True),
    "GitLab": ({"X-Gitlab-Token": SECRET.decode()}, True),
    "nothing": ({}, False),
    "an empty signature": ({"X-Hub-Signature-256": ""}, False),
    "an empty token": ({"X-Gitlab-Token": ""}, False),
    "another body's": ({"X-Hub-Signature-256": "sha256=" + hmac.new(SECRET, b"Hello", hashlib.sha256).hexdigest()}, False),
    "another secret's": ({"X-Hub-Signature-256": "sha256=" + hmac.new(b"x", BODY, hashlib.sha256).hexdigest()}, False),
    "of SHA-1": ({"X-Hub-Signature": "sha1=" + hmac.new(SECRET, BODY, hashlib.sha1).hexdigest()}, False),
    "a token beside a wrong signature": ({"X-Hub-Signature-256": "sha256=0", "X-Gitlab-Token": SECRET.decode()}, False),
    "no ASCII": ({"X-Hub-Signature-256": "sha256=é", "X-Gitlab-Token": "é"}, False),
    "the signature as a token": ({"X-Gitlab-Token": SIGNATURE}, False),
}


@pytest.mark.parametrize("case", HEADERS)
def test_only_who_knows_the_secret_is_believed(case: str) -> None:
    headers, is_right = HEADERS[case]
    assert is_authentic(CIMultiDict(headers), BODY, SECRET) is is_right


PUSH = {"ref": "refs/heads/production", "after": "1" * 40}
GONE = Push("production", is_removed=True)
PAYLOADS: Mapping[str, tuple[Mapping[str, str], Any, Push | None]] = {
    "GitHub's push": ({"X-GitHub-Event": "push"}, PUSH, Push("production")),
    "GitLab's push": ({"X-Gitlab-Event": "Push Hook"}, {**PUSH, "object_kind": "push"}, Push("production")),
    "a branch with a slash": ({}, {"ref": "refs/heads/feature/x-1"}, Push("feature/x-1")),
    "a ping": ({"X-GitHub-Event": "ping"}, {"zen": "x"}, None),
    "a tag": ({"X-Gitlab-Event": "Tag Push Hook"}, {"ref": "refs/tags/v1"}, None),
    "a tag as a push": ({"X-GitHub-Event": "push"}, {"ref": "refs/tags/v1"}, None),
    "a branch that was deleted": ({"X-GitHub-Event": "push"}, {**PUSH, "deleted": True}, GONE),
    "a branch that was removed, in GitLab": ({"X-Gitlab-Event": "Push Hook"}, {**PUSH, "after": "0" * 40}, GONE),
    "a branch that was deleted, in Gitea": ({"X-Gitea-Event": "delete"}, {"ref": "production", "ref_type": "branch"}, GONE),
    "a tag that was deleted, in Gitea": ({"X-Gitea-Event": "delete"}, {"ref": "v1", "ref_type": "tag"}, None),
}


@pytest.mark.parametrize("case", PAYLOADS)
def test_a_push_of_a_branch_is_what_counts(case: str) -> None:
    headers, payload, push = PAYLOADS[case]
    assert push_of(CIMultiDict(headers), payload) == push


@pytest.mark.parametrize("branch", ["--upload-pack=x", "../../etc", "a;id", "a\nb", ""])
def test_a_branch_whose_name_is_not_allowed_is_named(branch: str) -> None:
    with pytest.raises(BadRequest) as refused:
        push_of({}, {"ref": f"refs/heads/{branch}"})
    assert f"A branch of the name {quoted_for_log(branch)} is not deployed" in refused.value.message


@pytest.mark.parametrize("payload", [[], "x", None, {}, {"ref": 1}])
def test_what_is_no_push_at_all_is_refused(payload: Any) -> None:
    with pytest.raises(BadRequest):
        push_of({}, payload)


@pytest.mark.parametrize("mode", [0o604, 0o620, 0o666, 0o601])
def test_a_secret_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o640)
    assert read_secret(path) == SECRET
    path.chmod(mode)
    with pytest.raises(ConfigError, match="Others than its owner may read or change the secret"):
        read_secret(path)


@pytest.mark.parametrize("text", ["", "short", " " * 40])
def test_a_secret_is_long(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="shorter than 16"):
        read_secret(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_secret(tmp_path / "none")


class Deployer:
    """Deploys when the test lets it; `done` is what was deployed, `most` how many deployments ran at a time."""

    def __init__(self) -> None:
        self.gate, self.started = asyncio.Event(), asyncio.Event()
        self.done: list[tuple[str, str]] = []
        self.running = self.most = 0
        self._ended = asyncio.Condition()

    async def wait_for(self, number: int) -> None:
        """Return when so many deployments have been done."""
        async with self._ended:
            await self._ended.wait_for(lambda: len(self.done) >= number)

    async def __call__(self, environment: str, ref: str) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        self.started.set()
        try:
            await self.gate.wait()
            async with self._ended:
                self.done.append((environment, ref))
                self._ended.notify_all()
            if ref == "broken":
                raise PuppetError("it is broken")
            return "version"
        finally:
            self.running -= 1


async def test_one_deployment_runs_at_a_time_and_the_last_ref_of_an_environment_counts(caplog: pytest.LogCaptureFixture) -> None:
    deployer = Deployer()
    queue = DeploymentQueue(deployer, 2)
    work = asyncio.create_task(queue.work())
    try:
        async with asyncio.timeout(60):
            await queue.add("a", "one")
            await deployer.started.wait()
            for environment, ref in (("a", "two"), ("b", "broken"), ("a", "two")):
                await queue.add(environment, ref)
            with pytest.raises(Unavailable):
                await queue.add("c", "x")
            with pytest.raises(Conflict, match="The branch two is about to be deployed to the environment a: three is not"):
                await queue.add("a", "three")
            deployer.gate.set()
            await deployer.wait_for(3)
            await queue.add("c", "x")
            await deployer.wait_for(4)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    assert deployer.done == [("a", "one"), ("a", "two"), ("b", "broken"), ("c", "x")]
    assert deployer.most == 1
    assert "Deploying broken to b failed: it is broken" in caplog.text


async def test_the_program_is_called_with_the_paths_of_the_master_and_its_error_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program"
    answer = """[ "$1" = good ] && echo '{"version": "v1", "removed": ["good"]}' && exit\necho 'Error: no' >&2; exit 1\n"""
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/words\n{answer}")
    program.chmod(0o755)
    settings = load(MasterSettings, section="master", flags={"confdir": str(tmp_path), "deploy_hook_secret": "/secret"})
    deploy = deploy_by_program(settings, [str(program)])
    assert await deploy("good", "a/b") == "v1"
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:5] == ["good", "--ref=a/b", "--pushed", "--json", f"--confdir={tmp_path}"]
    assert not any("secret" in word for word in words)
    assert await deploy("good", "") == "removed"
    assert (tmp_path / "words").read_text().splitlines()[:3] == ["good", "--prune", "--json"]
    with pytest.raises(PuppetError, match=r"^no$"):
        await deploy("bad", "x")
