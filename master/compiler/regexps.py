"""The language's regular expressions; the agent's types use the same ones."""

from shared.regexps import Regexp, compiled, quoted, translate

__all__ = ["Regexp", "compiled", "quoted", "translate"]
