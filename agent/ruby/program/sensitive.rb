# frozen_string_literal: true

module Bunraku
  module Pcore
    # A secret of a manifest, as providers of the Resource API get it.
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
end

module Puppet
  module Pops
    # The types of Puppet's language, of which modules use the class of secrets.
    module Types
      extend Bunraku::Lacks

      # The type whose values are secrets.
      class PSensitiveType
        Sensitive = Bunraku::Pcore::Sensitive
      end
    end
  end
end
