"""The local variables of a template while it is read: which names are variables, and whose."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class VariableScope:
    """
    The variables of a block, a method or the template itself.

    Attributes:
        is_method: variables around a method are not seen in it.
        names: the Python names of the variables, by their names.
        own: the Python names, in order, without those of parameters.
        outer: the Python names of variables of scopes around that are assigned here.
    """

    around: VariableScope | None
    is_method: bool = False
    names: dict[str, str] = field(default_factory=dict)
    own: list[str] = field(default_factory=list)
    outer: dict[str, None] = field(default_factory=dict)


class Variables:
    """The scopes in force at one place of a template, the innermost is `current`."""

    def __init__(self) -> None:
        self.current = VariableScope(None)
        self._count = 0

    def enter(self, *, is_method: bool = False) -> VariableScope:
        self.current = VariableScope(self.current, is_method)
        return self.current

    def leave(self) -> None:
        assert self.current.around is not None
        self.current = self.current.around

    def find(self, name: str) -> str | None:
        """Return the Python name of a variable that has been assigned before; None when it is not the name of one."""
        scope: VariableScope | None = self.current
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = None if scope.is_method else scope.around
        return None

    def declare_parameter(self, name: str) -> str:
        """Return the Python name of a parameter of the current scope."""
        self._count += 1
        python_name = self.current.names[name] = f"v{self._count}_{name}" if name.isascii() else f"v{self._count}"
        return python_name

    def assign(self, name: str) -> str:
        """Return the Python name of a variable that is assigned: one that there is, or a new one of the current scope."""
        python_name = self.find(name)
        if python_name is None:
            python_name = self.declare_parameter(name)
            self.current.own.append(python_name)
            return python_name
        scope = self.current
        while python_name not in scope.names.values():
            scope.outer[python_name] = None
            assert scope.around is not None
            scope = scope.around
        return python_name

    def assign_instance_variable(self, python_name: str) -> bool:
        """Note that an instance variable is assigned here; return False inside of a method."""
        scope: VariableScope | None = self.current
        while scope is not None and scope.around is not None:
            if scope.is_method:
                return False
            scope.outer[python_name] = None
            scope = scope.around
        return True

    def unique_name(self, name: str) -> str:
        self._count += 1
        return f"m{self._count}_{name}" if name.isascii() and name.isidentifier() else f"m{self._count}"
