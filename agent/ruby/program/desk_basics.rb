# frozen_string_literal: true

module Bunraku
  # What the channel and this program ask of every desk here, which has `@libraries`, folders like a module's lib, and `@once`, a hash.
  module DeskBasics
    def raised(message)
      Puppet::Error.new(message)
    end

    def notes
      {}
    end

    def forget_blocks; end

    def first?(key)
      return false if @once[key]

      @once[key] = true
    end

    def library?(name)
      @libraries&.any? { |each| File.file?("#{each}/#{name.chomp('.rb')}.rb") }
    end

    # Reads a file of the libraries by its name; whether there is one. Parts of names come from catalogs: none of them leads elsewhere.
    def require_library(name)
      return false unless name.split('/').all? { |part| part.match?(/\A\w[\w.+-]*\z/) } && library?(name)

      require name
      true
    end
  end
end
