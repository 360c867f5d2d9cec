"""The name that was probably meant: one place for every "Did you mean …?"."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Return the name of `known` that is most like `name`, or '' when none is close."""
    import difflib  # only for a name that is wrong

    close = difflib.get_close_matches(name, list(known), n=1)
    return close[0] if close else ""


def did_you_mean(name: str, known: Iterable[str], *, form: str = "{}", otherwise: str = "") -> str:
    """
    Return `Did you mean NAME?`, or `otherwise` when no name of `known` is close to `name`.

    Args:
        form: how the name is shown, with `{}` in its place: quoted, or with `$` or `--` before it.
    """
    close = nearest_name(name, known)
    return f"Did you mean {form.format(close)}?" if close else otherwise
