"""Control repositories: a ref becomes a commit, a commit becomes files."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from shared.errors import ConfigError, NotFound, Unsupported
from shared.git import Git, check_location, check_ref, is_commit, without_credentials


@dataclass(frozen=True, slots=True)
class Repository:
    """A control repository; `address` may hold a password, so it is shown by `name` only."""

    address: str = field(repr=False)
    git: Git

    @classmethod
    def at(cls, address: str, git: Git) -> Repository:
        """Return the repository at an address; ConfigError, Unsupported when it is not one."""
        if not address:
            raise ConfigError("There is no control repository to deploy from", hint="Set deploy_repository, or give --repo.")
        return cls(check_location(address, git.protocols), git)

    @property
    def name(self) -> str:
        """The address without credentials."""
        return without_credentials(self.address)

    def commit_of(self, ref: str) -> str:
        """Return the commit of a branch, a tag or a commit id; raise NotFound or PuppetError. Blocks."""
        check_ref(ref)
        if is_commit(ref):
            return ref
        names = (f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}")  # a branch wins; of an annotated tag its commit
        listing = self._git("ls-remote", "--", self.address, *names, action=f"look for {ref} in {self.name}", folder=Path("/"))
        commits = {name: commit for commit, _, name in (line.partition("\t") for line in listing.splitlines())}
        for name in names:
            if is_commit(commits.get(name, "")):
                return commits[name]
        raise NotFound(f"There is no branch or tag {ref} in {self.name}", hint="--ref names another one than the environment's own name.")

    def refs(self) -> set[str]:
        """Return the names of all branches and tags; PuppetError when the repository does not answer, or has no branch. Blocks."""
        action = f"list the branches of {self.name}"
        listing = self._git("ls-remote", "--heads", "--tags", "--", self.address, action=action, folder=Path("/"))
        names = [line.partition("\t")[2] for line in listing.splitlines()]
        if not any(name.startswith("refs/heads/") for name in names):
            raise NotFound(f"There is no branch in {self.name}")
        return {name.split("/", 2)[2].removesuffix("^{}") for name in names if name.count("/") > 1}

    def export(self, commit: str, target: Path) -> None:
        """
        Write the files of a commit into the folder `target`, which exists. Blocks.

        Raises:
            Unsupported: The commit has submodules.
            PuppetError: It cannot be fetched.
        """
        with TemporaryDirectory(prefix="puppet-deploy-") as name:
            folder = Path(name)
            action = f"fetch {commit} from {self.name}"
            self._git("init", "--quiet", "--bare", "--template=", "--", name, action=action, folder=folder)
            fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "--", self.address, commit)
            self._git(*fetch, action=action, folder=folder)
            if ".gitmodules" in self._git("ls-tree", "--name-only", commit, action=action, folder=folder).splitlines():
                hint = "Name the modules in a Puppetfile instead."
                raise Unsupported(f"Submodules of a control repository are not deployed: {commit} in {self.name} has some", hint=hint)
            tree = (f"--git-dir={name}", f"--work-tree={target}")
            self._git(*tree, "read-tree", commit, action=action, folder=folder)
            self._git(*tree, "checkout-index", "--all", "--force", action=f"write the files of {commit}", folder=target)

    def _git(self, *words: str, action: str, folder: Path) -> str:
        return asyncio.run(self.git.run(*words, action=action, folder=folder, location=self.address))
