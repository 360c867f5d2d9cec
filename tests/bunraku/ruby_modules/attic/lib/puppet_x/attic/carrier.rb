require 'puppet/util/retry_action'
require 'puppet/util/warnings'

module PuppetX
  module Attic
    # What providers have in common. Its hook does not call that of Puppet's own class, as those of widespread modules.
    class Carrier < Puppet::Provider
      def self.inherited(subclass)
        subclass.instance_variable_set(:@confine_collection, @confine_collection.dup)
      end

      initvars
      commands ls: 'ls'

      # Succeeds when it is tried for the third time.
      def carry(most)
        tries = 0
        Puppet::Util::RetryAction.retry_action(retries: most, retry_exceptions: [Puppet::ExecutionFailure]) do
          Puppet::Util::Warnings.notice_once('somebody carries')
          tries += 1
          raise Puppet::ExecutionFailure, "try #{tries}" if tries < 3
        end
      end
    end
  end
end
