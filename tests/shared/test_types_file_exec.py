"""The types file and exec: what they accept, refuse, imply and compare."""

import pytest

from shared.errors import ResourceError
from shared.ral import ABSENT
from shared.types.exec import Exec
from shared.types.file import File

SUM = "{sha256}2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of 'x'


@pytest.mark.parametrize(
    ("given", "ensure"),
    [({"content": "x"}, "file"), ({"target": "y"}, "link"), ({"ensure": "false"}, "absent"), ({"ensure": False}, "absent"),
     ({"ensure": "/etc/hosts"}, "link"), ({"ensure": "directory"}, "directory"), ({"mode": "0644"}, None)],
)  # fmt: skip
def test_what_a_file_should_be_is_implied(given, ensure):
    assert File("/a", given).ensure == ensure


def test_a_path_as_ensure_is_a_links_target():
    file = File("/a", {"ensure": "/etc/hosts"})
    assert file.target == "/etc/hosts"


@pytest.mark.parametrize(
    ("title", "path"),
    [("/a/", "/a"), ("/a\n//", "/a\n"), ("///", "/"), ("C:/", "C:/"), ("C://", "C:/"), ("C:/a/", "C:/a"), (":/", ":"), ("", "")],
)
def test_a_title_gives_a_path_without_slashes_at_its_end(title, path):
    assert File.names_in(title) == {"path": path}


@pytest.mark.parametrize(("title", "path"), [("/a/", "/a"), ("/a//b///", "/a/b"), ("/", "/"), ("//a", "/a"), ("/a/../b", "/b")])
def test_paths_are_normal(title, path):
    assert File(title, {}).path == path


@pytest.mark.parametrize(
    ("title", "given", "message"),
    [
        ("a", {"ensure": "file"}, "Parameter path failed on File[a]: File paths must be fully qualified, not 'a'"),
        ("/a", {"mode": 420}, "Parameter mode failed on File[/a]: The file mode specification must be a string, not 'Integer'"),
        ("/a", {"mode": "0999"}, 'Parameter mode failed on File[/a]: The file mode specification is invalid: "0999"'),
        ("/a", {"mode": "u+q"}, 'Parameter mode failed on File[/a]: The file mode specification is invalid: "u+q"'),
        ("/a", {"content": 5},
         "Parameter content failed on File[/a]: Munging failed for value 5 in class content: "
         "no implicit conversion of Integer into String"),
        ("/a", {"source": "src"}, "Parameter source failed on File[/a]: Cannot use relative URLs 'src'"),
        ("/a", {"source": "mailto:x"}, "Parameter source failed on File[/a]: Cannot use opaque URLs 'mailto:x'"),
        ("/a", {"source": "ftp://h/x"}, "Parameter source failed on File[/a]: Cannot use URLs of type 'ftp' as source for fileserving"),
        ("/a", {"source": "/s", "content": "x"},
         "Validation of File[/a] failed: You cannot specify more than one of content, source, target"),
        ("/a", {"recurse": "remote"}, "Validation of File[/a] failed: You cannot specify a remote recursion without a source"),
        ("/a", {"source": "/s", "checksum": "none"}, "Validation of File[/a] failed: You cannot specify source when using checksum 'none'"),
        ("/a", {"content": "x", "checksum": "mtime"},
         "Validation of File[/a] failed: You cannot specify content when using checksum 'mtime'"),
        ("/a", {"source": "/s", "checksum_value": "ab"},
         "Validation of File[/a] failed: Checksum value 'ab' is not a valid checksum type sha256"),
        ("/a", {"type": "file"}, "Parameter type failed on File[/a]: type is read-only"),
        ("/a", {"contnet": "x"}, "no parameter named 'contnet'"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_says_why(title, given, message):
    with pytest.raises(ResourceError) as caught:
        File(title, given)
    assert caught.value.message == message


def test_content_is_held_as_its_checksum_and_the_last_one_counts():
    file = File("/a", {"content": ["one", "x"]})
    assert file.wanted("content") == [SUM] and file.actual_content == b"x"
    assert File("/a", {"content": "x", "checksum": "md5"}).content == "{md5}9dd4e461268c8034f5c8564e155c67a6"


def test_content_that_is_a_checksum_is_looked_up_and_one_that_only_looks_like_it_is_written():
    file = File("/a", {"content": "{md5}" + "a" * 32})
    assert file.actual_content is None and file.checksum == "md5"
    assert File("/a", {"content": "{foo}bar"}).actual_content == b"{foo}bar"


@pytest.mark.parametrize(
    ("given", "state", "out"),
    [
        ({"ensure": "file"}, {"ensure": ABSENT}, {"ensure"}),
        ({"ensure": "file"}, {"ensure": "link"}, {"ensure"}),
        ({"ensure": "file", "replace": False}, {"ensure": "link"}, set()),
        ({"ensure": "present"}, {"ensure": "fifo"}, set()),
        ({"content": "x"}, {"ensure": "file", "content": "{sha256}0"}, {"content"}),
        ({"content": "x"}, {"ensure": "file", "content": SUM}, set()),
        ({"content": "x", "replace": False}, {"ensure": "file", "content": "{sha256}0"}, set()),
        ({"content": "x", "ensure": "present"}, {"ensure": "directory"}, set()),
        ({"mode": "640"}, {"ensure": "file", "mode": "0640"}, set()),
        ({"mode": "0644"}, {"ensure": "directory", "mode": "0755"}, set()),
        ({"mode": "g+w"}, {"ensure": "file", "mode": "0640"}, {"mode"}),
        ({"mode": "a+rX"}, {"ensure": "file", "mode": "0644"}, set()),
        ({"mode": "0600"}, {"ensure": "link", "mode": "0777"}, set()),
        ({"mode": "u=rwX"}, {"ensure": "file", "mode": "0600"}, {"mode"}),
        ({"target": "new"}, {"ensure": "link", "target": "old"}, {"target"}),
        ({"target": "new", "replace": False}, {"ensure": "link", "target": "old", "reachable": True}, set()),
        ({"target": "new", "replace": False}, {"ensure": "link", "target": "old", "reachable": False}, {"target"}),
        ({"owner": 5}, {"ensure": "file", "owner": 5}, set()),
        ({"owner": "nobody-looked-up"}, {"ensure": "file", "owner": 5}, {"owner"}),
        ({"group": [4, 5]}, {"ensure": "file", "group": 5}, set()),
    ],
)  # fmt: skip
def test_what_is_out_of_sync(given, state, out):
    file = File("/a", given)
    out_of_sync = {p.name for p in file.declaration.properties if file.wanted(p.name) and not p.insync(file, state, file.wanted(p.name))}
    assert out_of_sync == out


def test_children_inherit_what_was_said_but_for_what_is_the_directorys_own():
    file = File("/d", {"ensure": "directory", "recurse": True, "mode": "0640", "owner": "bin", "source": "/s", "ignore": "*.bak"})
    child = file.child_at("a")
    assert (child.path, child.mode, child.owner, child.ignore) == ("/d/a", "0640", "bin", ["*.bak"])
    assert (child.ensure, child.recurse, child.source) == (None, None, [])


def test_mode_messages_show_four_digits_and_the_expression():
    file = File("/a", {"mode": "a+x"})
    mode = file.declaration.attributes["mode"]
    assert mode.change_text(file, "0644", "a+x") == "mode changed '0644' to '0755' (a+x)"
    assert mode.change_text(file, "0644", "0600") == "mode changed '0644' to '0600'"


def test_a_sensitive_content_hides_the_ensure_change_too():
    from shared.ral import Origin

    file = File("/a", {"content": "x"}, Origin(sensitive=frozenset({"content"})))
    assert file.is_sensitive("ensure") and file.is_sensitive("content") and not file.is_sensitive("mode")


def test_a_file_requires_its_parent_its_target_and_its_owner():
    file = File("/d/l", {"target": "/t", "owner": "bin", "group": 5})
    assert [str(ref) for ref in file.autorequire()] == ["File[/d]", "File[/t]", "User[bin]"]


@pytest.mark.parametrize(
    ("title", "given", "message"),
    [
        ("true", {}, "Validation of Exec[true] failed: 'true' is not qualified and no path was specified. "
                     "Please qualify the command or specify a path."),
        ("say", {"command": []}, "Validation of Exec[say] failed: '' is not qualified and no path was specified. "
                                 "Please qualify the command or specify a path."),
        ("/b", {"onlyif": "true"}, "Parameter onlyif failed on Exec[/b]: 'true' is not qualified and no path was specified. "
                                   "Please qualify the command or specify a path."),
        ("/b", {"creates": "made"}, "Parameter creates failed on Exec[/b]: creates must be a fully qualified path"),
        ("/b", {"cwd": "here"}, "Parameter cwd failed on Exec[/b]: cwd must be a fully qualified path"),
        ("/b", {"timeout": "soon"}, 'Parameter timeout failed on Exec[/b]: Munging failed for value "soon" in class timeout: '
                                    "The timeout must be a number."),
        ("/b", {"tries": 0}, "Parameter tries failed on Exec[/b]: Munging failed for value 0 in class tries: "
                           "Tries must be an integer >= 1"),
        ("/b", {"try_sleep": -1}, "Parameter try_sleep failed on Exec[/b]: Munging failed for value -1 in class try_sleep: "
                                  "try_sleep cannot be a negative number"),
        ("/b", {"environment": ["NOEQUALS"]}, "Parameter environment failed on Exec[/b]: Invalid environment setting 'NOEQUALS'"),
        ("/b", {"umask": "9"}, 'Parameter umask failed on Exec[/b]: The umask specification is invalid: "9"'),
    ],
)  # fmt: skip
def test_an_exec_that_cannot_be_says_why(title, given, message):
    with pytest.raises(ResourceError) as caught:
        Exec(title, given)
    assert caught.value.message == message


def test_an_exec_reads_what_it_was_given():
    file = Exec("x", {"command": "tool", "path": ["/a:/b", "/c"], "returns": [0, 1], "timeout": -1, "tries": "2", "umask": "077"})
    assert (file.path, file.wanted("returns"), file.timeout, file.tries, file.umask) == (["/a", "/b", "/c"], ["0", "1"], 0, 2, 0o77)
    assert Exec("/b", {"unless": [["/t", "a b"], "/u"]}).unless == [["/t", "a b"], "/u"]
    assert Exec("cd / && ls", {"provider": "shell"}).command == "cd / && ls"


def test_an_exec_requires_its_files_and_user():
    file = Exec("x", {"command": '"/a b/c" /arg', "cwd": "/d", "onlyif": "/t x", "user": "bin"})
    assert [str(ref) for ref in file.autorequire()] == ["File[/d]", "File[/a b/c]", "File[/t]", "User[bin]"]
