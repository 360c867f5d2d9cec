# frozen_string_literal: true

# What modules' Ruby has of Puppet in every program of ours: its errors, and that Puppet's own files are never read, wherever they are
# installed: a part of Puppet either exists here or does not.

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

  # The names of an installed Puppet's files.
  PUPPETS = %r{\A(puppet|puppet_pal|puppet_x|facter|hiera|hiera_puppet)(/|\z)}.freeze

  # The folders of the load path with an installed Puppet, which leave it. Debian has all libraries in one: `require` finds the others there.
  WITH_PUPPET = $LOAD_PATH.select { |folder| %w[puppet facter hiera].any? { |name| File.file?("#{folder}/#{name}.rb") } }.freeze
  $LOAD_PATH.reject! { |folder| WITH_PUPPET.include?(folder) }

  class << self
    # Reads what this program has under the name of a file of Puppet's; returns what `require` does.
    def offer(_name)
      false
    end

    # Whether a name is that of a file of Puppet's; modules may have files of such names, too.
    def puppets?(name)
      name.match?(PUPPETS) && !desk&.library?(name.chomp('.rb'))
    end

    # Answers `require` for a file of Puppet's.
    def stand_in(name)
      return offer(name) if name.match?(%r{\A(puppet|facter|hiera)(/|\z)})
      raise LoadError, "cannot load such file -- #{name}" unless name.chomp('.rb') == 'puppet_x'

      false
    end

    # Returns the path of a library that is installed beside a Puppet; nil for none.
    def beside_puppet(name)
      names = name.match?(/\.(rb|so)\z/) ? [name] : ["#{name}.rb", "#{name}.so"]
      WITH_PUPPET.product(names).map { |parts| parts.join('/') }.find { |path| File.file?(path) }
    end
  end
end

# What modules have for themselves, in lib/puppet_x.
module PuppetX
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

  class ExecutionFailure < Error; end

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

  alias bunraku_require require
  def require(name)
    path = (name.respond_to?(:to_path) ? name.to_path : name).to_s
    return Bunraku.stand_in(path) if Bunraku.puppets?(path)

    bunraku_require(name)
  rescue LoadError => e
    library = e.path == path ? Bunraku.beside_puppet(path) : nil
    raise if library.nil?

    bunraku_require(library)
  end
end
