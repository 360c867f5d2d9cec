# frozen_string_literal: true

module Puppet
  module Util
    # Tries a block again, after longer and longer waits.
    module RetryAction
      # Why there was no success; modules rescue these classes.
      class RetryException < Exception # rubocop:disable Lint/InheritException -- as there: a rescue of StandardError does not stop it
        class NoBlockGiven < RetryException; end
        class NoRetriesGiven < RetryException; end
        class RetriesExceeded < RetryException; end
      end

      # @param options [Hash] `retries`, and `retry_exceptions`, the classes of errors after which it is tried again
      def self.retry_action(options = {})
        raise RetryException::NoBlockGiven unless block_given?

        most = options[:retries] or raise RetryException::NoRetriesGiven
        failures = 0
        begin
          yield
        rescue *(options[:retry_exceptions] || [StandardError]) => e
          raise RetryException::RetriesExceeded, "#{most} exceeded", e.backtrace if failures >= most

          Puppet.info("Caught exception #{e.class}:#{e} retrying")
          failures += 1
          sleep((2**failures - 1) * 0.1)
          retry
        end
      end
    end
  end
end
