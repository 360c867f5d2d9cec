# frozen_string_literal: true

# Custom facts of modules for the agent that started this program: `ruby facts.rb DESCRIPTOR`; see shared/ruby/channel.rb.
#
# It has Facter's words and what modules use of Puppet in facts; neither Facter's nor Puppet's own Ruby is read.

require_relative 'surroundings'
require_relative 'wire'
require_relative 'puppet'
require_relative '../../../shared/ruby/util'
require_relative 'util'
require_relative 'accounts'
require_relative '../../../shared/ruby/execution'
require_relative 'facts/values'
require_relative 'facts/execution'
require_relative 'facts/resolution'
require_relative 'facts/aggregate'
require_relative 'facts/fact'
require_relative 'facts/collection'
require_relative 'facts/facter'
require_relative 'providers/system_service'
require_relative 'facts/required'
require_relative 'desk_basics'
require_relative 'facts/desk'

Bunraku.run(ARGV.shift.to_i, Bunraku::FactDesk.new) if $PROGRAM_NAME == __FILE__
