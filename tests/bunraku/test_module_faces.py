"""Subcommands of `puppet` that modules bring in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bunraku.modulefaces.files import MAX_SOURCE
from bunraku.puppet import command_names, main
from tests.support.command_line import Puppet, Said
from tests.support.needs import needs_root
from tests.support.processes import clean_environment

LAMPS = '''
from pathlib import Path
from typing import Literal

from shared.errors import NotFound
from shared.faces import Face, FaceCall, action, option


class Lamps(Face, name="lamps"):
    """
    See and dim lamps.

    They hang from the ceiling.

    Examples:
        puppet lamps show --lit
    """

    floor: int = option(0, "The floor that they are on.")

    def before(self, call: FaceCall) -> None:
        print(f"before {call.action}")

    async def after(self, call: FaceCall, result: object) -> None:
        print(f"after {call.action}: {result}")

    @action
    def show(self, *names: str, lit: bool = False, ceiling: bool = True, tag: tuple[str, ...] = ()) -> dict[str, object]:
        """
        Print lamps.

        Args:
            names: Only these.
            lit: Only those
                that are not dark.
        Returns: Their brightness.
        """
        return {"floor": self.floor, "names": list(names), "lit": lit, "ceiling": ceiling, "tag": list(tag)}

    @show.renders("count")
    def as_count(self, shown: dict[str, object]) -> str:
        return f"{len(shown['names'])} lamps"

    @action
    async def dim(self, name: str, percent: int = 50, *, pace: Literal["slow", "fast"] = "slow", to: Path | None = None) -> str:
        """Dim a lamp."""
        return f"{name} {percent} {pace} {to}"

    @dim.before
    def check_percent(self, call: FaceCall) -> None:
        if call.parameters["percent"] > 100:
            raise NotFound("There is no such brightness", hint="100 is the most.")
        call.parameters["name"] = call.parameters["name"].upper()

    @dim.after
    async def note(self, call: FaceCall, result: str) -> None:
        self.exit_code = 3

    @action
    def crash(self) -> None:
        """Fail in a way that nobody foresaw."""
        raise LookupError("the fuse")

    @action
    def where(self) -> dict[str, object]:
        """Print settings."""
        return {"server": self.settings.server, "vardir": self.settings.vardir}
'''


@pytest.fixture
def lamps(tmp_path: Path, puppet: Puppet) -> Path:
    return add_face(tmp_path, "lights", "lamps", LAMPS)


def add_face(root: Path, module: str, name: str, text: str) -> Path:
    """Put a face into a module of the environment; its file."""
    file = root / f"conf/code/environments/production/modules/{module}/lib/puppet/face/{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def face(name: str, body: str = '@action\n    def show(self) -> str:\n        """Print it."""\n        return "shown"') -> str:
    """The text of a face."""
    return f'from shared.faces import Face, IndirectionFace, action, option\nclass X(Face, name="{name}"):\n    """A face."""\n    {body}\n'


@pytest.fixture
def called(puppet: Puppet, tmp_path: Path) -> Puppet:
    """The command, with the code below its configuration."""

    class InSite(Puppet):
        def __call__(self, name: str, *words: str) -> Said:
            return puppet(name, "--codedir", str(tmp_path / "conf/code"), *words)

    return InSite(puppet.root, puppet.capture)


@pytest.mark.parametrize(
    ("line", "code", "printed"),
    [
        ("dim door", 3, "before dim\nafter dim: DOOR 50 slow None\nDOOR 50 slow None\n"),
        ("dim door 7 --pace=fast --to /x", 3, "before dim\nafter dim: DOOR 7 fast /x\nDOOR 7 fast /x\n"),
        ("--to /x dim -- --door", 3, "before dim\nafter dim: --DOOR 50 slow /x\n--DOOR 50 slow /x\n"),
    ],
)
def test_an_action_gets_its_arguments_between_its_hooks(lamps: Path, called: Puppet, line: str, code: int, printed: str) -> None:
    assert called("lamps", *line.split()) == Said(code, printed, "")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("show", {"floor": 0, "names": [], "lit": False, "ceiling": True, "tag": []}),
        ("show a b --lit --no-ceiling", {"floor": 0, "names": ["a", "b"], "lit": True, "ceiling": False, "tag": []}),
        ("show --tag x --floor 2 --tag=y", {"floor": 2, "names": [], "lit": False, "ceiling": True, "tag": ["x", "y"]}),
    ],
)
@pytest.mark.parametrize("form", ["--json", "--render-as json", "--render_as=json"])
def test_a_result_is_rendered_as_json(lamps: Path, called: Puppet, line: str, shown: object, form: str) -> None:
    said = called("lamps", *line.split(), *form.split())
    assert json.loads(said.out[said.out.index("{\n") :]) == shown


def test_a_result_is_rendered_as_yaml_and_in_a_form_of_the_action(lamps: Path, called: Puppet) -> None:
    assert "lit: false\n" in called("lamps", "show", "--render-as", "yaml").out
    assert called("lamps", "show", "a", "b", "--render-as", "count").out.endswith("\n2 lamps\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import sys\nsys.exit(7)\n", "SystemExit: 7"),
    ],
)
def test_a_face_that_ends_the_command_while_it_is_loaded_is_an_error(tmp_path: Path, called: Puppet, text: str, reason: str) -> None:
    file = add_face(tmp_path, "lights", "lamps", text)
    said = called("lamps", "show")
    assert (said.code, said.out) == (1, "")
    assert f"Could not load the face lamps: {reason}" in said.err and str(file) in said.err


def test_settings_are_options_of_a_face(lamps: Path, called: Puppet, tmp_path: Path) -> None:
    said = called("lamps", "where", "--server", "m.example.com")
    assert said.out.endswith(f"server  m.example.com\nvardir  {tmp_path}/vardir\n")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("dim", "puppet lamps dim takes 1 to 2 arguments, but you gave 0\nTry 'puppet help lamps dim' for usage\n"),
        ("dim a 1 2", "puppet lamps dim takes 1 to 2 arguments, but you gave 3\nTry 'puppet help lamps dim' for usage\n"),
        ("dim a much", "PERCENT must be a whole number, not 'much'\n"),
        ("dim a --pace quick", "--pace cannot be 'quick'\nIt is one of slow, fast.\n"),
        ("dim a --lit", "--lit is no option of puppet lamps dim\nTry 'puppet help lamps dim' for usage\n"),
        ("dim a --floor up", "--floor must be a whole number, not 'up'\n"),
        ("dim a 101", "There is no such brightness\n100 is the most.\n"),
        ("shwo", "'lamps' has no 'shwo' action.  See `puppet help lamps`.\nDid you mean puppet lamps show?\n"),
        ("", "'lamps' has no default action.  See `puppet help lamps`.\n"),
        ("show --bright", "Could not parse application options: invalid option: --bright\n"),
        ("show --render-as xml", "I don't know how to render 'xml'\nThere are console, s, json, yaml, count.\n"),
        ("dim a --render-as count", "I don't know how to render 'count'\nThere are console, s, json, yaml.\n"),
    ],
)
def test_a_wrong_call_is_one_error(lamps: Path, called: Puppet, line: str, error: str) -> None:
    said = called("lamps", *line.split())
    assert said.code == 1
    assert said.err.startswith(f"Error: {error}")


def test_an_action_that_raises_is_named_with_file_and_line(lamps: Path, called: Puppet) -> None:
    said = called("lamps", "crash")
    line = LAMPS.splitlines().index('        raise LookupError("the fuse")') + 1
    error = f"The action crash of the face lamps failed: LookupError: the fuse (file: {lamps}, line: {line})"
    assert said == Said(1, "before crash\n", f"Error: {error}\n--debug prints more.\n")


# --- help


def test_help_names_the_faces_of_modules_and_runs_none_of_them(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "lights", "lamps", LAMPS)
    add_face(tmp_path, "dark", "dark", face("dark") + f"\nopen({str(tmp_path / 'ran')!r}, 'w')\n")
    said = called("help")
    assert said.err == ""
    faces = said.out.partition("Subcommands of modules:\n")[2].splitlines()
    assert [line.split(maxsplit=1) for line in faces[:2]] == [["dark", "A face."], ["lamps", "See and dim lamps."]]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "text", "warning"),
    [
        ("broken", "class X(:", "Could not load the face broken: SyntaxError: invalid syntax (file: FILE, line: 1)"),
        ("other", face("another"), "FILE defines no face other"),
        ("large", "#" * (MAX_SOURCE + 1), f"Could not read the face large: larger than {MAX_SOURCE} bytes (file: FILE)"),
        ("node", face("node"), "The face node is not used: puppet node is built in (file: FILE)"),
        ("help", face("help"), "The face help is not used: puppet help is built in (file: FILE)"),
    ],
)
def test_a_face_that_cannot_be_used_is_one_line_of_warning(
    tmp_path: Path, lamps: Path, called: Puppet, name: str, text: str, warning: str
) -> None:
    file = add_face(tmp_path, "m", name, text)
    said = called("help")
    assert said.err == f"Warning: {warning.replace('FILE', str(file))}\n"
    assert "  lamps" in said.out


def test_the_help_of_a_face_has_its_actions_and_options(lamps: Path, called: Puppet) -> None:
    said = called("lamps", "--help")
    for text in (
        "Usage: puppet lamps show [NAMES...] [--lit] [--no-ceiling] [--tag TAG]\n       puppet lamps dim NAME [PERCENT]",
        "See and dim lamps.\n\nThey hang from the ceiling.\n",
        "\n  dim    Dim a lamp.\n",
        "--floor FLOOR",
        "The floor that they are on. (0)",
        "Examples:\n  puppet lamps show --lit\n",
    ):
        assert text in said.out
    assert (said.code, said.err) == (0, "")


def test_the_help_of_an_action_has_its_arguments(lamps: Path, called: Puppet) -> None:
    said = called("lamps", "show", "--help")
    assert said.out.startswith("Usage: puppet lamps show [NAMES...] [--lit] [--no-ceiling] [--tag TAG]\n\nPrint lamps.\n")
    assert "\n  NAMES  Only these.\n" in said.out
    assert "\n\nReturns: Their brightness.\n" in said.out
    assert "Only those that are not dark." in said.out
    assert "--render-as console|s|json|yaml|count" in said.out
    assert "[--pace slow|fast] [--to TO]" in called("lamps", "dim", "--help").out


# --- which file counts


def test_no_face_replaces_a_built_in_command(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m", "config", face("config"))
    assert called("config", "print", "certname").out == "node1.example.com\n"
    assert called("config", "show").err.startswith("Error: 'config' has no 'show' action")


def test_a_face_may_have_the_name_of_a_command_that_is_not_here(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m", "device", face("device"))
    assert called("device", "show").out == "shown\n"


def test_the_first_of_two_faces_counts_and_libdir_comes_last(tmp_path: Path, called: Puppet) -> None:
    folder = tmp_path / "vardir/lib/puppet/face"
    folder.mkdir(parents=True)
    (folder / "show.py").write_text(face("show").replace("shown", "of libdir"))
    assert called("show", "show").out == "of libdir\n"
    add_face(tmp_path, "b", "show", face("show").replace("shown", "of b"))
    assert called("show", "show").out == "of b\n"
    add_face(tmp_path, "a", "show", face("show").replace("shown", "of a"))
    assert called("show", "show").out == "of a\n"


def test_a_folder_whose_name_is_no_modules_has_no_faces(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m.old", "show", face("show"))
    assert called("show", "show").err.startswith("Error: Unknown Puppet subcommand 'show'")


def test_the_modulepath_of_the_command_line_counts(tmp_path: Path, lamps: Path, called: Puppet) -> None:
    folder = tmp_path / "more/m/lib/puppet/face"
    folder.mkdir(parents=True)
    (folder / "show.py").write_text(face("show"))
    assert called("show", "show").code == 1
    assert called("show", "show", "--modulepath", str(tmp_path / "more")).out == "shown\n"
    assert called("lamps", "where", f"--modulepath={tmp_path / 'more'}").err.startswith("Error: Unknown Puppet subcommand 'lamps'")


def test_faces_are_those_of_the_environment(tmp_path: Path, called: Puppet) -> None:
    folder = tmp_path / "conf/code/environments/dev/modules/m/lib/puppet/face"
    folder.mkdir(parents=True)
    (folder / "show.py").write_text(face("show"))
    assert called("show", "show", "--environment", "dev").out == "shown\n"
    said = called("show", "show", "--environment", "nosuch")
    assert said.err.splitlines()[0].startswith("Warning: Could not find a directory environment named 'nosuch'")
    assert said.err.splitlines()[1] == "Error: Unknown Puppet subcommand 'show'"


@pytest.mark.parametrize("place", ["file", "folder", "module", "target"])
def test_a_face_to_which_everybody_may_write_is_refused(tmp_path: Path, called: Puppet, place: str) -> None:
    file = add_face(tmp_path, "m", "show", face("show"))
    open_place = {"file": file, "folder": file.parent, "module": file.parents[3], "target": tmp_path / "open"}[place]
    if place == "target":
        open_place.mkdir()
        file.rename(open_place / "show.py")
        file.symlink_to(open_place / "show.py")
    open_place.chmod(0o777)
    said = called("show", "show")
    assert said == Said(
        1, "", f"Error: The face show is not used: everybody may write to {open_place} (file: {file})\nchmod o-w {open_place}\n"
    )


@needs_root
def test_a_face_of_another_user_in_a_folder_for_all_is_refused(tmp_path: Path, called: Puppet) -> None:
    file = add_face(tmp_path, "m", "show", face("show"))
    file.parent.chmod(0o1777)
    assert called("show", "show").out == "shown\n"
    os.chown(file, 65534, 65534)
    assert "belongs to another user, in a folder to which everybody may write" in called("show", "show").err


@pytest.mark.parametrize("folder", ["type", "model"])
def test_what_a_face_imports_is_refused_where_everybody_may_write_to_it(tmp_path: Path, called: Puppet, folder: str) -> None:
    file = add_face(tmp_path, "m", "show", f"from puppet_{folder}_lamp import X\n" + face("show"))
    imported = tmp_path / f"conf/code/environments/production/modules/n/lib/puppet/{folder}/lamp.py"
    imported.parent.mkdir(parents=True)
    imported.write_text("X = 1\n")
    assert called("show", "show").out == "shown\n"
    imported.chmod(0o666)
    said = called("show", "show")
    assert said.err.startswith(f"Error: Could not load the face show: Denied: everybody may write to {imported} (file: {file}, line: 1)\n")


def test_a_terminus_is_refused_where_everybody_may_write_to_it(tmp_path: Path, puppet: Puppet) -> None:
    file = tmp_path / "vardir/lib/puppet/indirector/report/spool.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from shared.indirector.termini import MemoryTerminus\nclass Spool(MemoryTerminus):\n    def __init__(self, context): ...\n"
    )
    file.chmod(0o666)
    said = puppet("report", "find", "web1", "--terminus", "spool")
    assert (said.code, said.err.splitlines()[0]) == (1, f"Error: everybody may write to {file}")


# --- what a face may declare


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (face("show", "x = 1 / 0"), "Could not load the face show: ZeroDivisionError: division by zero"),
        (face("shows"), "defines the face shows, not show"),
        ("x = 1", "must define one subclass of Face, not 0"),
        (face("show", "@action\n    def do(self, *, server: str = '') -> None: ..."), "--server is a setting, or an option of every face"),
        (face("show", "@action\n    def do(self, *, json: bool = False) -> None: ..."), "--json is a setting, or an option of every face"),
        (face("show", "@action\n    def do(self, x: dict) -> None: ..."), "The parameter x cannot be a dict"),
        (face("show", "@action\n    def do(self, **x: str) -> None: ..."), "do takes keywords of any name, which a command line has not"),
        (face("show", "@action\n    def do(self, x: 'Nowhere') -> None: ..."), "has a type that cannot be found"),
    ],
)
def test_a_declaration_that_cannot_be_is_an_error_of_its_own_command(tmp_path: Path, called: Puppet, text: str, error: str) -> None:
    file = add_face(tmp_path, "m", "show", text)
    said = called("show", "do")
    assert (said.code, said.out) == (1, "")
    assert error in said.err.splitlines()[0]
    assert str(file) in said.err.splitlines()[0]
    assert not (file.parent / "__pycache__").exists()
    assert called("config", "print", "certname").code == 0


def test_a_face_imports_types_of_modules(tmp_path: Path, called: Puppet) -> None:
    file = add_face(tmp_path, "m", "show", face("show").replace('return "shown"', "return Lamp.__name__"))
    file.write_text("from puppet_type_lamp import Lamp\n" + file.read_text())
    kind = file.parents[1] / "type" / "lamp.py"
    kind.parent.mkdir()
    kind.write_text('from shared.ral import Param, Type\nclass Lamp(Type, name="lamp"):\n    name = Param(str, namevar=True)\n')
    assert called("show", "show").out == "Lamp\n"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("None", ""),
        ("'a\\x1b[31m\\nb'", "a\\x1b[31m\nb\n"),
        ("True", "true\n"),
        ("[1, 'two']", "1\ntwo\n"),
        ("{'a': 1, 'bcd': None}", "a    1\nbcd\n"),
        ("[{'a': [1]}]", '[\n  {\n    "a": [\n      1\n    ]\n  }\n]\n'),
    ],
)
def test_results_are_printed_for_people(tmp_path: Path, called: Puppet, value: str, printed: str) -> None:
    add_face(tmp_path, "m", "show", face("show").replace('"shown"', value))
    assert called("show", "show").out == printed


def test_a_result_that_is_no_data_is_an_error(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m", "show", face("show").replace('"shown"', "object()"))
    assert called("show", "show").err.startswith("Error: A object cannot be rendered\nAn action returns plain data")


def test_ctrl_c_ends_a_face_in_puppets_words(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m", "show", face("show").replace('return "shown"', "raise KeyboardInterrupt"))
    assert called("show", "show") == Said(0, "", "Cancelling Face\n")


# --- indirections


REPORTS = '''
from shared.faces import IndirectionFace, action


class Runs(IndirectionFace, name="runs", indirection="report", without=("destroy",)):
    """Reports."""

    @action
    async def status(self, key: str) -> str:
        """Print how a run ended."""
        report = await (await self.bound()).find(key)
        return report.status
'''
FACTS = {"name": "web1", "values": {"os": {"name": "Debian"}}, "timestamp": "2026-01-01T00:00:00+00:00"}


def test_an_indirection_has_its_actions_for_free(tmp_path: Path, called: Puppet) -> None:
    add_face(
        tmp_path,
        "m",
        "known",
        "from shared.faces import IndirectionFace\nclass X(IndirectionFace, name='known', indirection='facts'): ...\n",
    )
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    place = ("--terminus", "yaml")
    assert called("known", "save", str(tmp_path / "facts.json"), *place) == Said(0, "", "")
    assert json.loads(called("known", "find", "web1", *place).out)["values"]["os"] == {"name": "Debian"}
    assert called("known", "search", "*", *place).out == "web1\n"
    assert called("known", "destroy", "web1", *place) == Said(0, "", "")
    assert called("known", "find", "web1", *place).err.startswith("Error: Could not find facts web1\n")
    assert called("known", "info", *place).out == "Run mode 'user': yaml\n"
    assert called("known", "find", "x", "--terminus", "jsn").err == "Error: There is no terminus jsn for facts\nDid you mean json?\n"


def test_actions_of_a_subclass_are_beside_those_of_the_indirection(tmp_path: Path, called: Puppet) -> None:
    add_face(tmp_path, "m", "runs", REPORTS)
    usage = called("runs", "--help").out
    assert "puppet runs status KEY" in usage
    assert "puppet runs destroy" not in usage
    report = {"host": "web1", "status": "changed", "time": "2026-01-01T00:00:00+00:00", "report_format": 12, "logs": [], "metrics": {}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert called("runs", "save", str(tmp_path / "report.json"), "--terminus", "yaml") == Said(0, "", "")
    assert called("runs", "status", "web1", "--terminus", "yaml").out == "changed\n"


@pytest.mark.parametrize("extra", ["[1]", "{", "x"])
def test_extra_options_are_an_object(tmp_path: Path, called: Puppet, extra: str) -> None:
    add_face(tmp_path, "m", "runs", REPORTS)
    assert called("runs", "find", "web1", "--terminus", "yaml", "--extra", extra).err.startswith("Error: Could not set --extra: ")


def test_built_in_faces_have_the_actions_of_their_indirection(tmp_path: Path, puppet: Puppet) -> None:
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    assert puppet("facts", "save", str(tmp_path / "facts.json"), "--terminus", "yaml") == Said(0, "", "")
    assert puppet("facts", "search", "*", "--terminus", "yaml").out == "web1\n"
    assert json.loads(puppet("facts", "find", "web1", "--terminus", "yaml").out)["values"]["os"] == {"name": "Debian"}
    assert puppet("facts", "destroy", "web1", "--terminus", "yaml") == Said(0, "", "")
    assert puppet("facts", "search", "*", "--terminus", "yaml").out == ""
    node = tmp_path / "node.json"
    node.write_text(json.dumps({"name": "web1", "environment": "production", "classes": {"role": {}}, "parameters": {}}))
    assert puppet("node", "save", str(node), "--terminus", "json") == Said(0, "", "")
    assert json.loads(puppet("node", "find", "web1", "--terminus", "json", "--json", "--facts_terminus", "yaml").out)["classes"] == {
        "role": {}
    }


@pytest.mark.parametrize(("name", "terminus"), [("node", "plain"), ("facts", "facter"), ("report", "processor"), ("catalog", "compiler")])
def test_info_names_the_default_terminus_as_puppets_does(puppet: Puppet, name: str, terminus: str) -> None:
    assert puppet(name, "info") == Said(0, f"Run mode 'user': {terminus}\n", "")


@pytest.mark.parametrize("name", ["node", "report", "facts", "catalog", "status", "file", "resource_type", "certificate_revocation_list"])
def test_an_indirection_at_the_master_needs_the_certificates_of_the_ca(puppet: Puppet, name: str) -> None:
    said = puppet(name, "find", "x", "--terminus", "rest")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: The CA certificates are missing from")


# --- cost


def test_a_built_in_command_does_not_look_for_faces(tmp_path: Path) -> None:
    code = (
        "import sys; from bunraku.puppet import main; code = main(sys.argv[1:]);"
        "print([name for name in sys.modules if 'faces.' in name or name == 'shared.faces'], file=sys.stderr); sys.exit(code)"
    )
    words = ["config", "print", "certname", "--confdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=Path(__file__).parents[2],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_name_that_can_be_no_face_is_not_looked_for(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_for() -> None:
        raise AssertionError("nobody looks")

    monkeypatch.setattr("bunraku.puppet.module_faces", looked_for)
    assert main(["../x"]) == 1
    assert "agent" in command_names()
