"""How a module declares a subcommand of `puppet`, a face: a class whose methods are its actions. This is the API for module authors."""

from .core import Face, FaceCall, action, option
from .indirection import IndirectionFace

__all__ = ["Face", "FaceCall", "IndirectionFace", "action", "option"]
