"""Templates and functions of modules in Ruby, in a child process of the one that compiles: only where a `ruby` program is installed."""

from shared.ruby import RubyProgram, RubySettings, find_ruby

from .host import RubyHost

__all__ = ["RubyHost", "RubyProgram", "RubySettings", "find_ruby"]
