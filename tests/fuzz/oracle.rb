# frozen_string_literal: true

# Compiles questions with the reference implementation (Debian's `puppet-agent`, 7.23): one JSON object a line on standard input,
# in the form of the conformance cases, one answer a line on standard output, in the form of their recordings. A question has:
#
#   manifest    the site manifest
#   files       {path below the environment: text}, modules and data
#   facts       {name: value}, beside the usual ones
#   node        the certname; node1.example.com without it
#   settings    {setting: value}; `<env>` in a value is the environment's folder; log_level: info keeps more logs
#   extensions  {oid or name: value}, of the certificate
#   classes     [name] or {name: parameters}, and
#   parameters  {name: value}, of a classifier
#   stdlib      true: with the modules of FOLDER
#
#   ruby oracle.rb [FOLDER]     FOLDER: what questions with `stdlib` find modules in besides their own
require 'fileutils'
require 'json'
require 'timeout'
require 'tmpdir'
require 'puppet'
require 'puppet/util/log'

ANSWERS = $stdout.dup
$stdout.reopen($stderr) # what a function prints is no answer
SHARED_MODULES = ARGV[0]
SECONDS = 20

FACTS = {
  'os' => { 'name' => 'Debian', 'family' => 'Debian', 'architecture' => 'amd64',
            'release' => { 'full' => '12.5', 'major' => '12', 'minor' => '5' },
            'distro' => { 'codename' => 'bookworm', 'id' => 'Debian' } },
  'networking' => { 'hostname' => 'node1', 'domain' => 'example.com', 'fqdn' => 'node1.example.com',
                    'ip' => '192.0.2.10' },
  'kernel' => 'Linux', 'osfamily' => 'Debian', 'operatingsystem' => 'Debian',
  'hostname' => 'node1', 'fqdn' => 'node1.example.com', 'domain' => 'example.com',
  'processors' => { 'count' => 2 }, 'memory' => { 'system' => { 'total_bytes' => 4_294_967_296 } },
  'is_virtual' => true
}.freeze
NODE = 'node1.example.com'

FOLDERS = %w[fuzz-conf fuzz-var].map { |prefix| Dir.mktmpdir(prefix) }.freeze
at_exit { FileUtils.rm_rf(FOLDERS) }
Puppet.initialize_settings(['--confdir', FOLDERS[0], '--vardir', FOLDERS[1]])
Puppet[:strict_variables] = true
Puppet[:strict] = :warning
Puppet[:storeconfigs] = false

# Keeps what is logged as pairs of level and text.
class LogLines
  attr_reader :lines

  def initialize = @lines = []
  def <<(message)
    @lines << [message.level.to_s, message.to_s]
    self
  end
end

Puppet::Util::Log.newdesttype :loglines do
  match 'LogLines'
  def initialize(messages) = @messages = messages
  def handle(message) = @messages << message
end

def lay_out(folder, question)
  files = { 'manifests/site.pp' => question['manifest'] }.merge(question['files'] || {})
  files['environment.conf'] ||= "modulepath = modules:#{SHARED_MODULES}\n" if question['stdlib'] && SHARED_MODULES
  FileUtils.mkdir_p(File.join(folder, 'modules'))
  files.each do |path, text|
    place = File.join(folder, path)
    FileUtils.mkdir_p(File.dirname(place))
    File.write(place, text)
  end
end

def listen(level)
  # Warnings that are given once a process are given to every question.
  Puppet.clear_deprecation_warnings
  Puppet::Util::Warnings.clear_warnings
  Puppet::Util::Log.close_all
  Puppet::Util::Log.level = level.to_sym
  LogLines.new.tap { |log| Puppet::Util::Log.newdestination(log) }
end

def compile(root, question)
  name = question['node'] || NODE
  facts = FACTS.merge(question['facts'] || {})
  loader = Puppet::Environments::Cached.new(Puppet::Environments::Directories.new(root, []))
  trusted = Puppet::Context::TrustedInformation.new('remote', name, question['extensions'] || {})
  Puppet.override(environments: loader) do
    environment = loader.get!(:production)
    Puppet.override(current_environment: environment, trusted_information: trusted) do
      node = Puppet::Node.new(name, facts: Puppet::Node::Facts.new(name, facts), environment: environment,
                                    classes: question['classes'] || [], parameters: question['parameters'] || {})
      node.merge(facts)
      node.add_server_facts('serverversion' => '7.23.0', 'servername' => 'puppet', 'serverip' => '127.0.0.1')
      node.trusted_data = trusted.to_h
      catalog = Puppet::Parser::Compiler.compile(node).filter(&:virtual?)
      Puppet.override(rich_data: environment.rich_data?) { catalog.to_data_hash }
    end
  end
end

def plain(data)
  resources = data['resources'].map { |each| each.reject { |key, _| key == 'kind' }.merge('tags' => (each['tags'] || []).sort) }
  { 'resources' => resources, 'edges' => data['edges'].map { |each| each.values_at('source', 'target') }, 'classes' => data['classes'] }
end

# Ruby's addresses of objects (`#<Puppet::Resource::Type:0x00007f…>`, or with the sign escaped) and the folder's name differ from run to run,
# and where the shared modules are from machine to machine.
def scrub(value, folder)
  case value
  when String
    value = value.gsub(folder, '<env>').gsub(/(#\\?<[\w:]+):0x\h{16}/, '\1')
    SHARED_MODULES ? value.gsub(SHARED_MODULES, '<env>/old') : value
  when Array then value.map { |each| scrub(each, folder) }
  when Hash then value.to_h { |key, each| [scrub(key, folder), scrub(each, folder)] }
  else value
  end
end

def answer(question)
  root = Dir.mktmpdir('fuzz-env')
  folder = File.join(root, 'production')
  lay_out(folder, question)
  given = question['settings'] || {}
  before = given.keys.to_h { |name| [name, Puppet[name.to_sym]] }
  given.each { |name, value| Puppet[name.to_sym] = value.is_a?(String) ? value.gsub('<env>', folder) : value }
  log = listen(given['log_level'] || 'notice')
  begin
    found = Timeout.timeout(SECONDS) { plain(compile(root, question)) }
  rescue Interrupt, SystemExit
    raise
  rescue Exception => e # rubocop:disable Lint/RescueException
    found = { 'error' => e.message, 'class' => e.class.name }
  end
  before.each { |name, value| Puppet[name.to_sym] = value }
  scrub(found.merge('logs' => log.lines), folder)
ensure
  FileUtils.rm_rf(root) if root
end

$stdin.each_line do |line|
  begin
    text = JSON.generate(answer(JSON.parse(line)))
  rescue JSON::GeneratorError, Encoding::UndefinedConversionError => e
    text = JSON.generate('error' => "No JSON can hold the answer: #{e.message.scrub}", 'class' => e.class.name, 'logs' => [])
  end
  ANSWERS.puts(text)
  ANSWERS.flush
end
