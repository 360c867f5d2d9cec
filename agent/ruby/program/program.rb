# frozen_string_literal: true

# Types, providers and facts of modules for the agent that started this program: `ruby program.rb DESCRIPTOR`; see shared/ruby/channel.rb.
#
# It has the words with which modules declare and the helpers they call; Puppet's own Ruby is never read.

require_relative 'surroundings'
require_relative 'wire'
require_relative 'puppet'
require_relative '../../../shared/ruby/sensitive'
require_relative '../../../shared/ruby/util'
require_relative 'util'
require_relative 'accounts'
require_relative '../../../shared/ruby/execution'
require_relative 'values'
require_relative 'types/parameter'
require_relative 'types/property'
require_relative 'types/property_lists'
require_relative 'providers/confine'
require_relative 'providers/provider'
require_relative 'types/resource'
require_relative 'types/type'
require_relative 'types/attributes'
require_relative 'types/instances'
require_relative 'facter'
require_relative 'libraries'
require_relative 'providers/system_service'
require_relative 'providers/services'
require_relative 'providers/builtin'
require_relative 'snapshot'
require_relative 'desk_basics'
require_relative 'desk'

Bunraku.run(ARGV.shift.to_i, Bunraku::Desk.new) if $PROGRAM_NAME == __FILE__
