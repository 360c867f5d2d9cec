"""Programs of ours in Ruby, which run modules' Ruby in a process of its own: the process, and what it and we say to each other."""

from .child import RubyChild, RubyProgram, RubySettings, find_ruby

__all__ = ["RubyChild", "RubyProgram", "RubySettings", "find_ruby"]
