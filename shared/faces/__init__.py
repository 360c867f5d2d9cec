"""The API of faces for module authors: a face is a subcommand of `puppet`, declared as a class whose methods are its actions."""

from .core import Face, FaceCall, action, option
from .indirection import IndirectionFace

__all__ = ["Face", "FaceCall", "IndirectionFace", "action", "option"]
