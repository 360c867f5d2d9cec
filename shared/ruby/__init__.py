"""Our programs in Ruby, which run modules' Ruby in separate processes: the process, and the protocol between it and us."""

from .child import RubyChild, RubyProgram, RubySettings, find_ruby

__all__ = ["RubyChild", "RubyProgram", "RubySettings", "find_ruby"]
