# frozen_string_literal: true

# The installed Puppet as a compiler: it is told where the server's files are, then compiles one node after another.

require_relative '../../shared/ruby/channel'
require 'puppet'

module Bunraku
  # All that goes over the channel is plain data.
  module Wire
    def self.dump(value) = value
    def self.load(value) = value
    def self.text(text) = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub
  end

  # What this program can be asked.
  class RealPuppet
    def forget_blocks = nil
    def notes = {}

    # Reads the settings, as the server's account, and returns Puppet's version.
    def begin(options, uid, gid)
      become(uid, gid) if uid
      Puppet.initialize_settings(options)
      # Once more as a server: what depends on settings of [server], as storeconfigs, is set up here.
      Puppet.settings.initialize_app_defaults(Puppet::Settings.app_defaults_for_run_mode(Puppet::Util::RunMode[:master]))
      # A kept connection can hang for as long as PuppetDB keeps it: Net::HTTP takes a session ticket of TLS 1.3 for an answer or its end.
      Puppet[:http_keepalive_timeout] = 0
      Puppet::Util::Log.level = :err
      folders = Puppet[:environmentpath].split(File::PATH_SEPARATOR)
      modules = Puppet[:basemodulepath].split(File::PATH_SEPARATOR)
      loaders = folders.map { |folder| Puppet::Environments::Directories.new(folder, modules) }
      @environments = Puppet::Environments::Cached.new(Puppet::Environments::Combined.new(*loaders))
      Puppet[:environment_timeout] = 'unlimited'
      Puppet.version
    end

    # Returns a node's catalog, or the error of its compile.
    def compile(job)
      Puppet.override(environments: @environments) do
        environment = @environments.get!(job['environment'].to_sym)
        trusted = Puppet::Context::TrustedInformation.new('remote', job['certname'], job['trusted']['extensions'] || {})
        Puppet.override(current_environment: environment, trusted_information: trusted, rich_data: Puppet[:rich_data]) do
          { 'catalog' => Puppet::Parser::Compiler.compile(node(job, environment)).filter(&:virtual?).to_data_hash }
        end
      end
    rescue StandardError, ScriptError, SystemStackError => e
      { 'error' => Wire.text(e.message) }
    end

    private

    def become(uid, gid)
      Process.initgroups(Etc.getpwuid(uid).name, gid)
      Process::GID.change_privilege(gid)
      Process::UID.change_privilege(uid)
    end

    def node(job, environment)
      facts = Puppet::Node::Facts.new(job['certname'], job['facts'])
      made = Puppet::Node.new(
        job['certname'], facts: facts, environment: environment, classes: job['classes'], parameters: job['parameters']
      )
      made.add_server_facts(job['server_facts'])
      made.trusted_data = job['trusted']
      made
    end
  end
end

Bunraku.run(ARGV.shift.to_i, Bunraku::RealPuppet.new)
