"""`file`: files, directories and links. Source: resource layer reference 5."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from ..errors import BadData, ResourceError
from ..filesystem import checksums, modes
from ..filesystem.checksums import Algorithm, Checksum
from ..models.file_metadata import FileMetadata
from ..ral import ABSENT, Ensure, Origin, Param, Property, Ref, State, Type, Value
from ..ral.attributes import as_list, ruby_class, text_of
from ..ral.core import CompleteCatalog
from ..ral.metaparams import RELATIONSHIPS

_ONLY_WITH_SOURCE = ("none", "ctime", "mtime")
_NOT_FOR_CHILDREN = frozenset(
    ("ensure", "recurse", "recurselimit", "max_files", "target", "alias", "source", "path", "content", *RELATIONSHIPS)
)


def _absolute(value: Any) -> None:
    if not isinstance(value, str) or not value.startswith("/"):
        raise ValueError(f"File paths must be fully qualified, not '{text_of(value)}'")


def normal_path(value: Any) -> str:
    """Return an absolute path without `.`, `..`, doubled and trailing slashes."""
    return "/" + os.path.normpath(str(value)).lstrip("/")


def _parents(path: str) -> Iterator[str]:
    """Yield the directories around a normal path, the nearest first."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


class FileEnsure(Ensure):
    """The desired kind of the path. A text that is not a listed value is the target of a link."""

    def munge(self, resource: Type, value: Any) -> Any:
        listed = self.listed(value)
        if listed is not None:
            return listed.value
        resource.assign("target", text_of(value))
        return "link"

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("ensure", ABSENT)
        if current != ABSENT and not resource.value_of("replace"):
            return True
        if desired[0] == "present":
            return bool(current != ABSENT)
        return bool(current == desired[0])

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        if desired in ("file", "present") and resource.wanted("content"):
            content = resource.declaration.attributes["content"]
            assert isinstance(content, FileContentProperty)
            return content.change_text(resource, ABSENT, resource.value_of("content"))
        return super().change_text(resource, current, desired)


class FileContentProperty(Property[str]):
    """The content, held as its checksum; the text itself is `File.actual_content`."""

    def munge(self, resource: Type, value: Any) -> Any:
        if not isinstance(value, str | bytes):
            kind = text_of(value) if isinstance(value, bool) else ruby_class(value)
            raise TypeError(f"no implicit conversion of {kind} into String")
        return value

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        assert isinstance(resource, File)
        if not resource.should_be_file(state):
            return True
        current = state.get("content", ABSENT)
        if current == ABSENT:
            return False
        return not resource.replace or any(_is_satisfied(current, value) for value in desired)

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        if current in (ABSENT, None):
            return f"defined content as '{desired}'"
        return f"undefined content from '{current}'" if desired == ABSENT else f"content changed '{current}' to '{desired}'"


class FileChecksumValue(Property[str]):
    """The checksum that the source's bytes must have; it replaces metadata."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        assert isinstance(resource, File)
        if not resource.source or not resource.should_be_file(state):
            return True
        current = state.get("checksum_value", ABSENT)
        if current == ABSENT:
            return False
        kind = resource.checksum
        return not resource.replace or any(_is_satisfied(f"{{{kind}}}{current}", f"{{{kind}}}{value}") for value in desired)


def _is_satisfied(current: Any, desired: str) -> bool:
    if current == desired:
        return True
    try:
        return checksums.matches(Checksum.parse(desired), Checksum.parse(str(current)))
    except BadData:
        return False


class FileTarget(Property[str]):
    """The text of a link."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        assert isinstance(resource, File)
        if desired[0] in ("notlink", "nochange") or resource.recurses:
            return True
        if not resource.replace and state.get("reachable"):
            return True
        return bool(state.get("target", ABSENT) == desired[0])


class FileOwner(Property[int]):
    """An owner or group: ids once the provider has looked names up (see `File.names`); a name that is not replaced does not exist."""

    def munge(self, resource: Type, value: Any) -> Any:
        text = text_of(value)
        if not text:
            raise ValueError(f"Invalid {self.name} name '\"\"'")
        return int(text) if text.isascii() and text.isdigit() else text

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        return state.get(self.name, ABSENT) in [value for value in desired if isinstance(value, int)]

    def is_text(self, resource: Type, value: Any) -> str:
        assert isinstance(resource, File)
        return super().is_text(resource, resource.names.get((self.name, value), value))

    def should_text(self, resource: Type, value: Any) -> str:
        return self.is_text(resource, value)


class FileMode(Property[str]):
    """Permission bits: four octal digits, or a symbolic expression that is applied to the present bits."""

    def validate(self, resource: Type, value: Any) -> None:
        if not isinstance(value, str):
            raise ValueError(f"The file mode specification must be a string, not '{ruby_class(value)}'")
        if not modes.is_mode(value):
            raise ValueError(f'The file mode specification is invalid: "{value}"')

    def munge(self, resource: Type, value: Any) -> Any:
        return modes.octal(int(value, 8)) if modes.is_octal(value) else value

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        if state.get("ensure") == "link":
            return True  # a link has no mode of its own
        current = state.get("mode", ABSENT)
        return any(modes.in_sync(value, current, directory=state.get("ensure") == "directory") for value in desired)

    def change_text(self, resource: Type, current: Any, desired: Any) -> str:
        if modes.is_octal(desired) or current == ABSENT:
            return super().change_text(resource, current, desired)
        assert isinstance(resource, File)
        bits = modes.octal(modes.apply_mode(desired, int(current, 8), directory=resource.is_directory))
        return f"{super().change_text(resource, current, bits)} ({desired})"


class FileSourceParam(Param[list[str]]):
    """URLs; an absolute path becomes a `file:` URL."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        return [_source(value) for value in as_list(raw)]


def _source(value: Any) -> str:
    text = text_of(value)
    if text.startswith("/"):
        return "file://" + (text.rstrip("/") or "/")
    scheme = urlsplit(text).scheme if ":" in text.split("/")[0] else ""
    if not scheme:
        raise ValueError(f"Cannot use relative URLs '{text}'")
    if not text[len(scheme) + 1 :].startswith("/"):
        raise ValueError(f"Cannot use opaque URLs '{text}'")
    if scheme not in ("file", "puppet", "http", "https"):
        raise ValueError(f"Cannot use URLs of type '{scheme}' as source for fileserving")
    return text.rstrip("/")


class FileIgnore(Param[list[str]]):
    """Patterns for names; false for none."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        values = as_list(raw)
        if any(not isinstance(value, str | bool) for value in values):
            raise ValueError("Ignore must be a string or an Array")
        return [value for value in values if isinstance(value, str)]


def _backup(value: Any) -> str | None:
    text = text_of(value[0] if isinstance(value, list) and value else value)
    if text == "false":
        return ""
    if text in ("true", ".puppet-bak"):
        return ".puppet-bak"
    if not text or not isinstance(value, str | list):
        raise ValueError(f"Invalid backup type {text_of(value)}")
    return text


def _recurse(value: Any) -> str:
    text = text_of(value)
    if text in ("true", "inf", "false", "remote"):
        return "true" if text == "inf" else text
    raise ValueError(f'Invalid recurse value "{text}"')


class File(Type, name="file", features={"manages_symlinks": "The provider can manage symbolic links."}):
    """A file, a directory or a symbolic link: its existence, content, owner and mode."""

    elsewhere = frozenset(("windows",))

    ensure = FileEnsure(
        str,
        values=(
            Value("absent", aliases=("false",), event="file_removed"),
            Value("file", event="file_created"),
            Value("present", event="file_created"),
            Value("directory", event="directory_created"),
            Value("link", event="link_created", requires=("manages_symlinks",)),
        ),
        match=(".+",),
        doc="present, absent, file, directory, link; any other text means a link to it.",
    )
    content = FileContentProperty(object, doc="The content, as text.")
    checksum_value = FileChecksumValue(str, munge=lambda v: text_of(v).lower(), doc="Checksum that the source's content must have.")
    target = FileTarget(str, doc="What a link leads to.")
    owner = FileOwner(object, doc="Name or id of the user it belongs to.")
    group = FileOwner(object, doc="Name or id of the group it belongs to.")
    mode = FileMode(str, doc="Permissions: octal digits or a symbolic expression.")
    type_ = Property(str, read_only=True, doc="What is there: file, directory, link, …")
    seluser = Property(str, doc="SELinux user.")
    selrole = Property(str, doc="SELinux role.")
    seltype = Property(str, doc="SELinux type.")
    selrange = Property(str, doc="SELinux range.")
    ctime = Property(str, read_only=True, doc="Time of the last change of the inode.")
    mtime = Property(str, read_only=True, doc="Time of the last change of the content.")

    path = Param(str, namevar=True, check=_absolute, munge=normal_path, doc="Absolute path.")
    backup = Param(str, default="", munge=_backup, doc="Where to back up replaced content: a filebucket, a file name extension, or false.")
    checksum = Param(str, values=checksums.ALGORITHMS, default="sha256", doc="How contents are compared.")
    force = Param(bool, default=False, doc="Whether directories may be removed.")
    ignore = FileIgnore(str, many=True, doc="Patterns of names that recursion passes over.")
    links = Param(str, values=("follow", "manage"), default="manage", doc="Whether links are managed or followed.")
    max_files = Param(int, match=(r"^[0-9]+$", r"^-1$"), default=0, doc="How many entries recursion may meet: 0 warns above 1000, -1 any.")
    purge = Param(bool, default=False, doc="Whether recursion removes unmanaged files.")
    recurse = Param(str, munge=_recurse, doc="true, false, or remote: only files of the source.")
    recurselimit = Param(int, match=(r"^[0-9]+$",), doc="How deep recursion goes.")
    replace = Param(bool, default=True, doc="Whether an existing content, target or kind is changed.")
    selinux_ignore_defaults = Param(bool, default=False, doc="Whether the system's default contexts are not asked for.")
    show_diff = Param(bool, default=True, doc="Whether differences are shown.")
    source = FileSourceParam(str, many=True, doc="Where the content comes from; the first that exists.")
    source_permissions = Param(
        str, values=("use", "use_when_creating", "ignore"), default="ignore", doc="Whether owner, group and mode come from the source."
    )
    sourceselect = Param(str, values=("first", "all"), default="first", doc="Whether trees of several sources are merged.")
    staging_location = Param(str, check=_absolute, munge=normal_path, doc="Folder for the file while it is written.")
    validate_cmd = Param(str, doc="Command that must succeed on the new file before it replaces the old one.")
    validate_replacement = Param(str, default="%", doc="The placeholder of the new file's path in validate_cmd.")

    def __init__(self, title: str, parameters: Mapping[str, Any], origin: Origin | None = None) -> None:
        self.actual_content: bytes | None = None  # None: no content, or that of the source or the bucket
        self.metadata: FileMetadata | None = None  # of the source, once known
        self.names: dict[tuple[str, Any], str] = {}  # ("owner" | "group", id) → name, as far as the provider looked them up
        self.is_directory = False  # as the provider last saw it
        super().__init__(title, parameters, origin)

    @classmethod
    def names_in(cls, title: str) -> dict[str, Any]:
        """Return the path without slashes at its end; `/` and `C:/` keep one."""
        path = title.rstrip("/")
        is_root = path != title and (not path or (path.endswith(":") and len(path) > 1))
        return {"path": f"{path}/" if is_root else path}

    def validate(self) -> None:
        if sum(bool(self.wanted(attribute)) for attribute in ("content", "target")) + bool(self.source) > 1:
            raise ValueError("You cannot specify more than one of content, source, target")
        if self.recurse == "remote" and not self.source:
            raise ValueError("You cannot specify a remote recursion without a source")
        if self.checksum == "none" and self.source:
            raise ValueError("You cannot specify source when using checksum 'none'")
        if self.checksum in _ONLY_WITH_SOURCE and self.wanted("content"):
            raise ValueError(f"You cannot specify content when using checksum '{self.checksum}'")
        value = self.value_of("checksum_value")
        if value is not None and not checksums.valid(checksums.algorithm(self.checksum), value):
            raise ValueError(f"Checksum value '{value}' is not a valid checksum type {self.checksum}")
        self._replace_content_by_checksum()
        if self.value_of("ensure") is None:
            implied = "link" if self.wanted("target") else "file" if self.wanted("content") else None
            if implied:
                self._values["ensure"] = [implied]

    def _replace_content_by_checksum(self) -> None:
        """Replace the content by its checksum; a text that is a checksum refers to a file in the bucket."""
        contents = self.wanted("content")
        if not contents:
            return
        last = contents[-1]
        if isinstance(last, str) and checksums.looks_like_checksum(last):
            with suppress(BadData):  # it only looks like one
                self.manage_checksum(Checksum.parse(last))
                return
        self.actual_content = last if isinstance(last, bytes) else last.encode("utf-8", "surrogateescape")
        self.use_checksum(checksums.algorithm(self.checksum))

    # --- for the provider

    def use_checksum(self, algorithm: Algorithm) -> None:
        """Compare by `algorithm`; the checksum of a literal content is computed again."""
        self._values["checksum"] = algorithm
        if self.actual_content is not None:
            self._values["content"] = [str(Checksum.of(algorithm, self.actual_content))]

    def manage_content(self, content: bytes) -> None:
        """Manage that content, as if the manifest had set it."""
        self.actual_content = content
        self.use_checksum(checksums.algorithm(self.checksum))

    def manage_checksum(self, checksum: Checksum) -> None:
        """Manage a content given only by its checksum."""
        self._values["checksum"] = checksum.type
        self._values["content"] = [str(checksum)]

    def set_desired(self, attribute: str, values: list[Any]) -> None:
        """Replace a property's desired values by `values`, which are converted already."""
        self._values[attribute] = values

    @property
    def recurses(self) -> bool:
        return self.recurse in ("true", "remote")

    def should_be_file(self, state: State) -> bool:
        """Return whether this resource manages a file's content, in view of the current state."""
        desired, current = self.value_of("ensure"), state.get("ensure", ABSENT)
        if desired == "file":
            return True
        if desired == "present":
            return current in (ABSENT, "file")
        return desired is None and (bool(self.wanted("content")) or current == "file")

    def child_at(self, relative: str) -> File:
        """Return the resource for a path below this directory, with the attributes that a manifest sets for the directory."""
        attributes = {name: value for name, value in self.given.items() if name not in _NOT_FOR_CHILDREN}
        if "backup" in attributes:
            attributes["backup"] = self.backup or False  # as a manifest writes that there are no backups
        child = self.child(f"{self.path.rstrip('/')}/{relative}", attributes)
        assert isinstance(child, File)
        return child

    def is_sensitive(self, attribute: str) -> bool:
        hidden = self.origin.sensitive
        if attribute in ("ensure", "content", "checksum_value") and ("content" in hidden or "source" in hidden):
            return True
        return super().is_sensitive(attribute)

    # --- order

    def check_catalog(self, catalog: CompleteCatalog) -> None:
        bucket = self.backup
        if bucket and not bucket.startswith(".") and bucket != "puppet" and catalog.find(Ref("filebucket", bucket)) is None:
            raise ResourceError(f"Could not find filebucket {bucket} specified in backup")

    def ancestors(self) -> Iterator[str]:
        return _parents(self.path)

    def autorequire(self) -> Iterator[Ref]:
        for parent in _parents(self.path):
            ref = Ref("file", parent)
            if self.surroundings is None or self.find(ref) is not None:
                yield ref
                break
        target = self.value_of("target")
        if target:
            yield Ref("file", target)
        for kind, name in (("user", self.value_of("owner")), ("group", self.value_of("group"))):
            if isinstance(name, str):
                yield Ref(kind, name)
