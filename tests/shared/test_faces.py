"""What authors of faces import, and how docstrings become help."""

from __future__ import annotations

import shared.faces
from shared.docstrings import parse_docstring

PUBLIC = ["Face", "FaceCall", "IndirectionFace", "action", "option"]


def test_the_public_names_stay() -> None:
    assert sorted(shared.faces.__all__) == PUBLIC
    assert all(hasattr(shared.faces, name) for name in shared.faces.__all__)


def test_a_docstring_is_taken_apart() -> None:
    doc = parse_docstring(
        """
        Dim a lamp,
        slowly.

        It takes a while.

        Twice as long at night.

        Args:
            name: Which lamp
                it is.
            **percent (int): How bright.
        Returns: Nothing.
        Examples:
            puppet lamps dim door
              --pace slow
        """
    )
    assert doc.summary == "Dim a lamp, slowly."
    assert doc.description == "It takes a while.\n\nTwice as long at night."
    assert doc.parameters == {"name": "Which lamp it is.", "percent": "How bright."}
    assert doc.returns == "Nothing."
    assert doc.examples == "puppet lamps dim door\n  --pace slow"


def test_without_a_docstring_everything_is_empty() -> None:
    assert parse_docstring(None).summary == parse_docstring("").description == ""


def test_an_action_is_a_method_in_python() -> None:
    class Lamps(shared.faces.Face, name="lamps"):
        @shared.faces.action
        def double(self, number: int) -> int:
            return 2 * number

    assert Lamps().double(4) == 8
    assert [*Lamps.declaration.actions] == ["double"]
