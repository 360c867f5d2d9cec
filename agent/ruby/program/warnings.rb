# frozen_string_literal: true

module Puppet
  module Util
    # Messages that are logged once.
    module Warnings
      @logged = {}

      def self.once(level, message)
        Puppet.public_send(level, message) unless @logged.key?(message)
        @logged[message] = true
        nil
      end

      def self.clear_warnings
        @logged.clear
        nil
      end

      module_function

      def debug_once(message)
        Warnings.once(:debug, message)
      end

      def notice_once(message)
        Warnings.once(:notice, message)
      end

      def warnonce(message)
        Warnings.once(:warning, message)
      end
    end
  end
end
