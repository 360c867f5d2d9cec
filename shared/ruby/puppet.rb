# frozen_string_literal: true

# What modules' Ruby has of Puppet in every program of ours: its errors, and that Puppet's own files are never read.

module Bunraku
  # Raises an error for what Puppet has and this program does not.
  module Lacks
    def const_missing(name)
      raise Lacking, "#{self}::#{name}"
    end

    def method_missing(name, *)
      raise Lacking, "#{self}.#{name}"
    end

    def respond_to_missing?(*)
      false
    end
  end

  # Reads what this program has under the name of a file of Puppet's; returns what `require` does.
  def self.offer(_name)
    false
  end
end

module Puppet
  extend Bunraku::Lacks

  # The errors that code raises and rescues by name.
  class Error < RuntimeError
    attr_accessor :original, :file, :line

    def initialize(message = nil, original = nil)
      super(message)
      @original = original
    end
  end

  class DevError < Error; end

  class ResourceError < Error; end

  # An error at a place in a file.
  class ParseError < Error
    attr_accessor :pos

    def initialize(message = nil, file = nil, line = nil, pos = nil, original = nil)
      super(message, original)
      @file, @line, @pos = file, line, pos
    end
  end
end

# Puppet's translations; here all texts are English.
module Kernel
  private

  def _(text)
    text
  end

  def n_(one, many, count)
    count == 1 ? one : many
  end

  # Puppet's own files are never read, wherever they are installed: a part of Puppet either exists here or does not.
  alias bunraku_require require
  def require(name)
    own = name.to_s.match?(%r{\A(puppet|facter|hiera)(/|\z)}) && !Bunraku.desk&.library?(name.to_s.chomp('.rb'))
    own ? Bunraku.offer(name.to_s) : bunraku_require(name)
  end
end
