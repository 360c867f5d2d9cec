"""
Faces: subcommands of `puppet` with actions. Source: command line reference 1.2.

A face is a class, an action one of its methods: parameters by place are its arguments, parameters by keyword only its options; their
types convert and check what the command line has, docstrings are its help. The result of an action is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar, get_type_hints, overload

from ..docstrings import Docstring, parse_docstring
from ..errors import ConfigError
from ..settings import IGNORED_SETTINGS, AgentSettings, MasterSettings
from .parameters import FaceParameter, evaluated, parameter_of, parameters_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Hook = TypeVar("Hook", bound=Callable[..., Any])
SECTIONS = ("user", "agent", "master")
_OWN_WORDS = frozenset(("help", "version", "render-as", "json", "yaml", "modulepath"))
_SETTINGS = {*AgentSettings.model_fields, *MasterSettings.model_fields, *IGNORED_SETTINGS, "serverport"}


@dataclass(slots=True)
class FaceCall:
    """One call of an action: its name and the values of all its parameters, which a hook may change before the action gets them."""

    action: str
    parameters: dict[str, Any]
    render_as: str = "console"


class FaceAction(Generic[P, R]):
    """A method of a face that the command line calls. In Python it is called like any method, without hooks."""

    def __init__(self, function: Callable[P, R], *, default: bool = False) -> None:
        self.function = function
        self.is_default = default
        self.doc = parse_docstring(function.__doc__)
        self.parameters: tuple[FaceParameter, ...] = ()  # known when its class is complete
        self.renderers: dict[str, Callable[..., str | bytes]] = {}
        self.hooks_before: list[Callable[..., Any]] = []
        self.hooks_after: list[Callable[..., Any]] = []

    @property
    def name(self) -> str:
        return self.function.__name__.rstrip("_")

    @overload
    def __get__(self, face: None, owner: type) -> FaceAction[P, R]: ...
    @overload
    def __get__(self, face: object, owner: type) -> Callable[..., R]: ...
    def __get__(self, face: object | None, owner: type) -> FaceAction[P, R] | Callable[..., R]:
        return self if face is None else self.function.__get__(face, owner)

    def renders(self, form: str) -> Callable[[Hook], Hook]:
        """Decorate a method (self, result) that makes the output of this action for `--render-as FORM`."""

        def decorate(renderer: Hook) -> Hook:
            self.renderers[form] = renderer
            return renderer

        return decorate

    def before(self, hook: Hook) -> Hook:
        """Decorate a method (self, call: FaceCall) that runs before this action; its exception ends the call."""
        self.hooks_before.append(hook)
        return hook

    def after(self, hook: Hook) -> Hook:
        """Decorate a method (self, call: FaceCall, result) that runs after this action, when it has not failed."""
        self.hooks_after.append(hook)
        return hook


@overload
def action(function: Callable[P, R], /) -> FaceAction[P, R]: ...
@overload
def action(*, default: bool = False) -> Callable[[Callable[P, R]], FaceAction[P, R]]: ...
def action(function: Callable[P, R] | None = None, /, *, default: bool = False) -> Any:
    """Make a method, which may be `async`, an action; the default one is what `puppet FACE` does without an action's name."""
    return FaceAction(function) if function is not None else partial(FaceAction, default=default)


@dataclass(frozen=True, slots=True)
class _FaceOption:
    """An option of all actions of a face; its type is the annotation of the attribute."""

    default: Any
    doc: str


def option(default: T, doc: str = "") -> T:
    """Declare an option of all actions, as in `panel: Path = option(Path("/var/lib/lamps"), "The folder.")`; read it as `self.panel`."""
    return _FaceOption(default, doc)  # type: ignore[return-value]  # it takes its place in every instance


@dataclass(frozen=True, slots=True)
class FaceDeclaration:
    """The declaration of a face by its class; `options` are those of all actions."""

    name: str
    doc: Docstring = field(default_factory=Docstring)
    section: str = "user"
    actions: Mapping[str, FaceAction[..., Any]] = field(default_factory=dict)
    options: Mapping[str, FaceParameter] = field(default_factory=dict)

    @property
    def default_action(self) -> str:
        """The name of the action without a name, '' when there is none."""
        return next((name for name, each in self.actions.items() if each.is_default), "")


class Face:
    """
    A subcommand of `puppet`; subclass it as `class Lamps(Face, name="lamps")` in `lib/puppet/face/lamps.py`.

    Attributes:
        settings: those of puppet.conf and of the command line, of the section that the class names (`section="agent"`), else `user`.
        exit_code: of the program; an action may set it.
    """

    declaration: ClassVar[FaceDeclaration]
    settings: AgentSettings
    exit_code: int = 0
    services: Any  # what the program does for faces of indirections

    def __init_subclass__(cls, *, name: str = "", section: str = "user", without: tuple[str, ...] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if not name:
            return  # a base class of faces
        if section not in SECTIONS:
            raise ConfigError(f"There is no section {section}", hint=f"Sections are {', '.join(SECTIONS)}.")
        actions: dict[str, FaceAction[..., Any]] = {}
        options: dict[str, FaceParameter] = {}
        types = evaluated(get_type_hints, cls)
        for base in reversed(cls.__mro__):
            for attribute, value in vars(base).items():
                if isinstance(value, FaceAction):
                    actions[value.name] = value
                    value.parameters = parameters_of(value.function, value.doc)
                elif isinstance(value, _FaceOption):
                    annotation = types.get(attribute, type(value.default))
                    options[attribute] = parameter_of(attribute, annotation, value.default, value.doc, is_option=True)
        for unwanted in without:
            actions.pop(unwanted, None)
        for each in (*options.values(), *(each for action in actions.values() for each in action.parameters if each.is_option)):
            if each.word in _OWN_WORDS or each.word.replace("-", "_") in _SETTINGS:
                raise ConfigError(f"--{each.word} is a setting, or an option of every face", hint="Read self.settings.")
        cls.declaration = FaceDeclaration(name, parse_docstring(cls.__doc__), section, actions, options)

    @classmethod
    def made(cls, settings: AgentSettings, services: Any, options: Mapping[str, Any]) -> Self:
        """Return the face of one call: `options` are the values of those of all actions that were given."""
        face = cls()
        face.settings = settings
        face.services = services
        for name, parameter in cls.declaration.options.items():
            setattr(face, name, options.get(name, parameter.default))
        return face

    def before(self, call: FaceCall) -> Any:
        """Run before every action; an exception ends the call. May be `async`."""

    def after(self, call: FaceCall, result: Any) -> Any:
        """Run after every action that has not failed. May be `async`."""
