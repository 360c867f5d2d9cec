#!/usr/bin/env ruby
# frozen_string_literal: true
#
# Compiles one site again and again in one process of the reference implementation, through its public API:
#
#   ruby reference.rb CODEDIR FACTS.json REPEAT CATALOG.json    prints {"seconds": [first, …], "json": [first, …]}
#
# Seconds are processor time of a compile up to its plain data, and of turning that into JSON, which the last one leaves in a file.
require 'json'
require 'tmpdir'
require 'fileutils'
require 'puppet'

codedir, facts_file, repeat, catalog_file = ARGV
folders = Array.new(2) { Dir.mktmpdir('bench') }
at_exit { FileUtils.rm_rf(folders) }
Puppet.initialize_settings(['--confdir', folders[0], '--vardir', folders[1], '--codedir', codedir, '--environment_timeout', 'unlimited'])
Puppet[:strict] = :warning
Puppet[:strict_variables] = true
Puppet::Util::Log.level = :err
Puppet::Util::Log.newdestination(:console)

NAME = 'bench.example.com'
FACTS = JSON.parse(File.read(facts_file))

def now = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

def node_for(environment)
  node = Puppet::Node.new(NAME, facts: Puppet::Node::Facts.new(NAME, FACTS), environment: environment)
  node.merge(FACTS)
  node.add_server_facts('serverversion' => Puppet.version, 'servername' => 'puppet', 'serverip' => '127.0.0.1')
  node.trusted_data = Puppet.lookup(:trusted_information).to_h
  node
end

seconds = []
json = []
text = ''
environments = Puppet::Environments::Cached.new(Puppet::Environments::Directories.new(File.join(codedir, 'environments'), []))
Puppet.override(environments: environments) do
  Integer(repeat).times do
    environment = environments.get!(:production)
    trusted = Puppet::Context::TrustedInformation.new('remote', NAME, {})
    Puppet.override(current_environment: environment, trusted_information: trusted, rich_data: true) do
      began = now
      catalog = Puppet::Parser::Compiler.compile(node_for(environment)).filter(&:virtual?)
      data = catalog.to_data_hash
      compiled = now
      text = JSON.generate(data)
      seconds << compiled - began
      json << now - compiled
    end
  end
end
File.write(catalog_file, text)
puts JSON.generate('seconds' => seconds, 'json' => json)
