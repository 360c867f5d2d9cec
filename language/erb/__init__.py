"""
ERB templates and functions in Ruby as Python: one whose Ruby lies in a subset becomes a function, and Ruby runs any other as a whole.

`translation` has a template or a function read with the grammar of Ruby and its tree checked, in `reading`, and the Python code written, in
`writing`. `runtime` is what this code calls: Ruby's methods on Ruby's values, or a Doubt where we are not certain. `purity` says whether
what is left to Ruby can read anything but what it is given.
"""

from .errors import Doubt, Refusal, RubyError, RubyStop

ERB_VERSION = 4
"""Raise this whenever the same template or function gives other code, or is refused for another reason."""

__all__ = ["ERB_VERSION", "Doubt", "Refusal", "RubyError", "RubyStop"]
