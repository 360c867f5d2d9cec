"""The language's regular expressions; the agent's types use the same ones."""

from shared.regexps import Match, Regexp, quoted

__all__ = ["Match", "Regexp", "quoted"]
