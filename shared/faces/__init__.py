"""How a module declares a subcommand of `puppet`, a face: a class whose methods are its actions. This is the API for module authors."""

from .core import Face, FaceAction, FaceCall, FaceServices, Renderer, action, option
from .indirection import IndirectionFace

__all__ = ["Face", "FaceAction", "FaceCall", "FaceServices", "IndirectionFace", "Renderer", "action", "option"]
