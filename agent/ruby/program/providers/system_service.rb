# frozen_string_literal: true

module Bunraku
  # The commands that start, stop and ask for a service of this host.
  module SystemService
    def self.command(verb, name)
      return ['service', name, verb] unless File.directory?('/run/systemd/system')

      ['systemctl', verb == 'status' ? 'is-active' : verb, '--', name]
    end
  end
end
