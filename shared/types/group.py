"""`group`: groups of users. Source: resource layer reference 9.2, 13."""

from __future__ import annotations

import re
from typing import Any

from ..ral import ABSENT, Param, Property, State, Type, Value, displayed, ensurable
from ..ral.attributes import text_of
from .kinds import arguments
from .kinds.lists import KeyValueList

FEATURES = {
    "manages_members": "The members are a property of the group.",
    "manages_aix_lam": "AIX' loadable modules are managed.",
    "system_groups": "Groups with gids of the system are made.",
    "manages_local_users_and_groups": "Only local groups are managed, whatever other name services have.",
}


def _gid(value: Any) -> Any:
    if not re.fullmatch(r"-?[0-9]+", text_of(value)):
        raise ValueError(f"Invalid GID {text_of(value)}")
    return int(value)


class GroupMembers(Property[list[str]]):
    """Names of users; `auth_membership` decides whether they are all members or the least."""

    unsupported = "warning"  # who is in a group may be who has its rights

    def should(self, resource: Type, state: State, desired: list[Any]) -> list[str]:
        names = {name for value in desired for name in text_of(value).split(",") if name}
        current = state.get("members", ABSENT)
        if not resource.value_of("auth_membership") and isinstance(current, list | tuple):
            names |= set(current)
        return sorted(names)

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("members", ABSENT)
        return sorted(set(current) if isinstance(current, list | tuple) else ()) == self.should(resource, state, desired)

    def is_text(self, resource: Type, value: Any) -> str:
        return displayed(value) if value == ABSENT else displayed(",".join(value))

    def should_text(self, resource: Type, value: Any) -> str:
        return displayed(",".join(value))


_ELSEWHERE = "aix directoryservice ldap pw windows_adsi"


class Group(Type, name="group", features=FEATURES):
    """A group, usually a local one; its members are mostly declared by the users."""

    elsewhere = frozenset(_ELSEWHERE.split())

    ensure = ensurable(Value("present", event="group_created"), Value(ABSENT, event="group_removed"), doc="Whether the group exists.")
    gid = Property(int, munge=_gid, check=_gid, doc="The group's number.")
    members = GroupMembers(str, many=True, check=arguments.check_field, requires=("manages_members",), doc="The group's members.")
    attributes = KeyValueList(membership="attribute_membership", requires=("manages_aix_lam",), doc="Further attributes (AIX).")

    name = Param(str, namevar=True, check=arguments.check_name, doc="The group's name.")
    auth_membership = Param(bool, default=False, doc="Whether members lists all of them.")
    allowdupe = Param(bool, default=False, doc="Whether the gid may be another group's.")
    ia_load_module = Param(str, requires=("manages_aix_lam",), doc="The loadable module (AIX).")
    attribute_membership = Param(str, values=("inclusive", "minimum"), default="minimum", doc="Whether attributes lists all of them.")
    system = Param(bool, default=False, doc="Whether a new group gets a gid of the system's.")
    forcelocal = Param(bool, requires=("manages_local_users_and_groups",), doc="Whether only the local files count.")
