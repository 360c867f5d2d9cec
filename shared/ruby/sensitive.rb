# frozen_string_literal: true

module Bunraku
  # A secret of a manifest.
  class Sensitive
    def initialize(value)
      @value = value
    end

    def unwrap
      @value
    end

    def to_s
      'Sensitive [value redacted]'
    end

    def inspect
      "#<#{self}>"
    end

    def ==(other)
      other.is_a?(Sensitive) && other.unwrap == @value
    end
    alias eql? ==

    def hash
      @value.hash
    end
  end
end

module Puppet
  module Pops
    extend Bunraku::Lacks

    # The types of Puppet's language, of which modules use the class of secrets.
    module Types
      extend Bunraku::Lacks

      # The type whose values are secrets.
      class PSensitiveType
        extend Bunraku::Lacks

        Sensitive = Bunraku::Sensitive
      end
    end
  end
end
