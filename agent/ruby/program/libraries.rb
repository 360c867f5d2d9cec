# frozen_string_literal: true

module Bunraku
  # Parts of Puppet that are read when a module requires them, by the names under which it does.
  OFFERED = {
    'puppet/util/inifile' => 'providers/inifile', 'puppet/util/ini_config' => 'providers/inifile',
    'puppet/settings/ini_file' => 'providers/inifile',
    'puppet/provider/parsedfile' => 'providers/parsedfile', 'puppet/util/fileparsing' => 'providers/parsedfile',
    'puppet/util/filetype' => 'providers/parsedfile',
    'puppet/util/diff' => 'offered/diff', 'puppet/util/retry_action' => 'offered/retry_action', 'puppet/util/warnings' => 'offered/warnings',
    'puppet/resource_api' => 'resource_api/resource_api', 'puppet/resource_api/simple_provider' => 'resource_api/resource_api'
  }.freeze

  def self.offer(name)
    part = OFFERED[name.chomp('.rb')]
    part ? bunraku_require_own(part) : false
  end

  def self.bunraku_require_own(part)
    file = File.join(File.dirname(File.realpath(__FILE__)), "#{part}.rb")
    raise Lacking, part unless File.exist?(file)

    require file
  end
end

# Parts that are read when a module names them without requiring them.
module Puppet
  autoload(:ResourceApi, File.join(__dir__, 'resource_api/resource_api.rb'))

  module Util
    autoload(:NetworkDevice, File.join(__dir__, 'resource_api/resource_api.rb'))
    autoload(:Diff, File.join(__dir__, 'offered/diff.rb'))
    autoload(:RetryAction, File.join(__dir__, 'offered/retry_action.rb'))
    autoload(:Warnings, File.join(__dir__, 'offered/warnings.rb'))
  end
end
