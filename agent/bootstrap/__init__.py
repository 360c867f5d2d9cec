"""From nothing to a verified connection: key, CA, request, certificate, revocation list."""

from .options import Options
from .sequence import State, Step, next_step
from .shell import Bootstrap
from .texts import fingerprint_text

__all__ = ["Bootstrap", "Options", "State", "Step", "fingerprint_text", "next_step"]
