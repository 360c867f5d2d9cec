# frozen_string_literal: true

# Compiles environments with Debian's puppet: one JSON object a line in (id, root, modulepath, certname, facts; also parameters, classes
# and settings), one a line out. An environment is read once.
require 'json'
require 'tmpdir'
require 'fileutils'
require 'puppet'

PLACES = %w[conf var].to_h { |each| [each, Dir.mktmpdir("modules-#{each}")] }
at_exit { FileUtils.rm_rf(PLACES.values) }
Puppet.initialize_settings(['--confdir', PLACES['conf'], '--vardir', PLACES['var']])
Puppet[:environment_timeout] = 'unlimited'

Puppet::Util::Log.newdesttype :heard do
  match 'Heard'
  def initialize(heard) = @heard = heard
  def handle(said) = @heard.logs << [said.level.to_s, said.to_s]
end

# No Struct: a destination of logs is told from others by what it is, not by what it holds.
class Heard
  attr_reader :logs

  def initialize = @logs = []
end

READ = {} # rubocop:disable Style/MutableConstant

def environments(job)
  READ[job['root']] ||= begin
    (job['settings'] || {}).each { |name, value| Puppet[name.to_sym] = value }
    empty_puppetdb if Puppet[:storeconfigs]
    Puppet::Environments::Cached.new(Puppet::Environments::Directories.new(File.dirname(job['root']), job['modulepath']))
  end
end

# Queries and collectors of exported resources find nothing.
def empty_puppetdb
  require 'puppet/indirector/resource/puppetdb'
  require 'puppet/util/puppetdb'
  Puppet::Resource::Puppetdb.define_method(:search) { |_request| [] }
  Puppet::Util::Puppetdb.define_singleton_method(:query_puppetdb) { |_query| [] }
end

def compiled(job)
  Puppet.override(environments: environments(job)) do
    environment = Puppet.lookup(:environments).get!(:production)
    trusted = Puppet::Context::TrustedInformation.new('remote', job['certname'], {})
    Puppet.override(current_environment: environment, trusted_information: trusted) do
      facts = Puppet::Node::Facts.new(job['certname'], job['facts'])
      classes = job['classes'] || []
      node = Puppet::Node.new(job['certname'], facts: facts, environment: environment, classes: classes, parameters: job['parameters'] || {})
      node.merge(facts.values)
      node.add_server_facts('serverversion' => Puppet.version, 'servername' => 'puppet', 'serverip' => '127.0.0.1')
      node.trusted_data = trusted.to_h
      catalog = Puppet::Parser::Compiler.compile(node).filter(&:virtual?)
      data = Puppet.override(rich_data: true) { catalog.to_data_hash }
      { 'resources' => data['resources'].each { |each| each.delete('kind') },
        'edges' => data['edges'].map { |each| [each['source'], each['target']] },
        'classes' => data['classes'] }
    end
  end
end

answers = $stdout.dup
$stdout.reopen($stderr) # what a function prints is no answer
answers.sync = true
$stdin.each_line do |line|
  job = JSON.parse(line)
  heard = Heard.new
  Puppet::Util::Log.close_all
  Puppet::Util::Log.level = :notice
  Puppet::Util::Log.newdestination(heard)
  Puppet.clear_deprecation_warnings
  Puppet::Util::Warnings.clear_warnings
  answer = begin
    compiled(job)
  rescue StandardError, ScriptError, SystemStackError, SecurityError => e
    { 'error' => e.message }
  end
  answer = answer.merge('id' => job['id'], 'logs' => heard.logs)
  begin
    line = JSON.generate(answer)
  rescue JSON::GeneratorError => e # a catalog with octets that are no text
    line = JSON.generate('error' => e.message, 'id' => job['id'], 'logs' => [])
  end
  answers.puts line
end
