"""`user`: accounts. Source: resource layer reference 9.1, 13."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..ral import ABSENT, Param, Property, Ref, State, Type, Value, ensurable
from ..ral.attributes import as_list, ruby_class, text_of
from .kinds import arguments
from .kinds.lists import KeyValueList, NameList

FEATURES = {
    "allows_duplicates": "Two users may have one uid.",
    "manages_homedir": "Home directories are made and removed.",
    "manages_passwords": "Passwords are managed, as hashes.",
    "manages_password_age": "The ages of passwords are managed.",
    "manages_password_salt": "The salt of a password is an attribute of its own.",
    "manages_expiry": "Expiry dates are managed.",
    "manages_shell": "Login shells are managed.",
    "manages_loginclass": "Login classes are managed.",
    "manages_roles": "Roles are managed.",
    "manages_solaris_rbac": "Solaris' roles, profiles and authorisations are managed.",
    "manages_aix_lam": "AIX' loadable modules are managed.",
    "manages_local_users_and_groups": "Only local users are managed, whatever other name services have.",
    "system_users": "Users with uids of the system are made.",
}
_MEMBERSHIP = ("inclusive", "minimum")


def number_or_text(value: Any) -> Any:
    """Return digits as a number; other text stays as it is, for the system's own tools to refuse."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value) else value


def _password(value: Any) -> None:
    if isinstance(value, str) and ":" in value:
        raise ValueError("Passwords cannot include ':'")
    if isinstance(value, str) and any(ord(c) < 32 or ord(c) == 127 for c in value):
        raise ValueError("Passwords cannot include control characters")


def _days(label: str) -> Any:
    def check(value: Any) -> None:
        if not re.fullmatch(r"-?\d+", text_of(value)):
            raise ValueError(f"{label} must be provided as a number.")

    return check


def _group_name(value: Any) -> None:
    text = text_of(value)
    if re.fullmatch(r"\d+", text):
        raise ValueError("Group names must be provided, not GID numbers.")
    if "," in text:
        raise ValueError("Group names must be provided as an array, not a comma-separated list.")
    if not text:
        raise ValueError('Group names must not be empty. If you want to specify "no groups" pass an empty array')
    arguments.check_name(value)


def _expiry(value: Any) -> None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}|absent", text_of(value)):
        raise ValueError('Expiry dates must be YYYY-MM-DD or the string "absent"')


def _no_number(label: str) -> Any:
    def check(value: Any) -> None:
        arguments.check_name(value)
        if re.fullmatch(r"\d+", text_of(value)):
            raise ValueError(f"{label} names must be provided, not numbers")

    return check


class UserPrimaryGroup(Property[Any]):
    """The primary group by number or name; of several alternatives the first that exists is set."""

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        numbers = state.get("group_numbers", {})
        return any(state.get("gid") == numbers.get(text_of(value), value) for value in desired)


class UserPurgeKeys(Param[Any]):
    """`true`: the user's authorized_keys; or paths, in which `~/` and `%h/` mean the home directory."""

    def accept(self, resource: Type, raw: Any) -> list[str]:
        if text_of(raw) in ("true", "false"):
            return ["%h/.ssh/authorized_keys"] if text_of(raw) == "true" else []
        for entry in as_list(raw):
            if not isinstance(entry, str):
                raise ValueError(f"Each entry for purge_ssh_keys must be a string, not a {ruby_class(entry)}")
            arguments.check_plain(entry)
            if not re.match(r"/|~/|%h/", entry):
                raise ValueError(f"Paths to keyfiles must be absolute, not {entry}")
        return as_list(raw)


_ELSEWHERE = "aix directoryservice hpuxuseradd ldap openbsd pw user_role_add windows_adsi"


class User(Type, name="user", features=FEATURES):
    """An account, usually a local one."""

    elsewhere = frozenset(_ELSEWHERE.split())

    ensure = ensurable(
        Value("present", event="user_created"),
        Value(ABSENT, event="user_removed"),
        Value("role", event="role_created", requires=("manages_solaris_rbac",)),
        doc="Whether the user exists.",
    )
    home = Property(str, check=arguments.check_field, doc="The home directory; it is only made together with the user, see managehome.")
    uid = Property(object, munge=number_or_text, check=arguments.check_name, doc="The user's number.")
    gid = UserPrimaryGroup(object, munge=number_or_text, check=arguments.check_name, doc="The primary group, by number or name.")
    comment = Property(str, check=arguments.check_field, doc="Who it is, usually the full name.")
    shell = Property(str, check=arguments.check_field, requires=("manages_shell",), doc="The login shell; it must exist.")
    password = Property(
        str, check=_password, sensitive=True, requires=("manages_passwords",), doc="The password's hash, as the system stores it."
    )
    password_min_age = Property(
        int, check=_days("Password minimum age"), requires=("manages_password_age",), doc="Days before a password may be changed again."
    )
    password_max_age = Property(
        int, check=_days("Password maximum age"), requires=("manages_password_age",), doc="Days after which a password must be changed."
    )
    password_warn_days = Property(
        int, check=_days("Password warning days"), requires=("manages_password_age",), doc="Days of warning before a password expires."
    )
    groups = NameList(check=_group_name, doc="Further groups, by name; `membership` decides whether only these.")
    expiry = Property(str, check=_expiry, requires=("manages_expiry",), doc="The day the account expires, YYYY-MM-DD, or absent.")
    roles = NameList(membership="role_membership", check=_no_number("Role"), requires=("manages_roles",), doc="Roles (Solaris).")
    auths = NameList(
        membership="auth_membership", check=_no_number("Auth"), requires=("manages_solaris_rbac",), doc="Authorisations (Solaris)."
    )
    profiles = Property(
        str, many=True, check=_no_number("Profile"), requires=("manages_solaris_rbac",), doc="Profiles, in order (Solaris)."
    )
    keys = KeyValueList(membership="key_membership", requires=("manages_solaris_rbac",), doc="Further attributes (Solaris).")
    project = Property(str, requires=("manages_solaris_rbac",), doc="The project (Solaris).")
    attributes = KeyValueList(membership="attribute_membership", requires=("manages_aix_lam",), doc="Further attributes (AIX).")
    salt = Property(str, requires=("manages_password_salt",), doc="The password's salt (macOS).")
    iterations = Property(int, requires=("manages_password_salt",), doc="The password's rounds (macOS).")
    loginclass = Property(str, check=_no_number("Class"), requires=("manages_loginclass",), doc="The login class (BSD).")

    name = Param(str, namevar=True, check=arguments.check_name, doc="The user's name.")
    membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether groups lists all of them or those at least.")
    system = Param(bool, default=False, doc="Whether a new user gets a uid of the system's.")
    allowdupe = Param(bool, default=False, doc="Whether the uid may be another user's.")
    managehome = Param(bool, default=False, doc="Whether the home directory is made and removed together with the user.")
    role_membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether roles lists all of them or those at least.")
    auth_membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether auths lists all of them or those at least.")
    profile_membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether profiles lists all of them or those at least.")
    key_membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether keys lists all of them or those at least.")
    ia_load_module = Param(str, requires=("manages_aix_lam",), doc="The loadable module (AIX).")
    attribute_membership = Param(str, values=_MEMBERSHIP, default="minimum", doc="Whether attributes lists all of them or those at least.")
    forcelocal = Param(bool, requires=("manages_local_users_and_groups",), doc="Whether only the local files count.")
    purge_ssh_keys = UserPurgeKeys(
        list, default=lambda _: [], doc="Whether keys that are not managed are removed, or the files to look into."
    )

    def autorequire(self) -> Iterator[Ref]:
        for value in self.wanted("gid") or ():
            if isinstance(value, int):
                yield from (group.ref for group in self.managed("group") if value in (group.wanted("gid") or ()))
            else:
                yield Ref("group", text_of(value))
        for value in self.wanted("groups") or ():
            yield Ref("group", text_of(value))
        for value in self.wanted("roles") or ():
            yield Ref("user", text_of(value))
