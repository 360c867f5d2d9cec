"""
ERB templates as Python: one whose Ruby lies in a subset becomes a function, and any other is left to Ruby as a whole.

`translation` has a template read with the grammar of Ruby and its tree checked, in `reading`, and the Python code written, in `writing`.
`runtime` is what this code calls: Ruby's methods on Ruby's values, or a Doubt where we are not certain. `purity` says whether what is left
to Ruby, functions among it, can read anything but what it is given.
"""

from .errors import Doubt, Refusal, RubyError, RubyStop

ERB_VERSION = 7
"""Raise this whenever the same template gives other code, or is refused for another reason, and whenever `purity` judges otherwise."""

__all__ = ["ERB_VERSION", "Doubt", "Refusal", "RubyError", "RubyStop"]
