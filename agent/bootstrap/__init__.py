"""The way to a verified connection: key, CA, certificate request, certificate, revocation list."""

from .options import BootstrapOptions
from .sequence import BootstrapState, BootstrapStep, next_step
from .shell import Bootstrap
from .texts import fingerprint_text

__all__ = ["Bootstrap", "BootstrapOptions", "BootstrapState", "BootstrapStep", "fingerprint_text", "next_step"]
