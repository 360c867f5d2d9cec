# frozen_string_literal: true

module Puppet
  module Util
    # Messages that are logged once.
    module Warnings
      module_function

      def debug_once(message)
        Puppet.debug(message) if Bunraku.desk.first?([:debug, message])
      end

      def notice_once(message)
        Puppet.notice(message) if Bunraku.desk.first?([:notice, message])
      end

      def warnonce(message)
        Puppet.warning(message) if Bunraku.desk.first?([:warning, message])
      end
    end
  end
end
