# frozen_string_literal: true

require_relative '../../../shared/ruby/puppet'

module Bunraku
  # Puppet's log levels as methods. Who logs is `log_source`: '' is Puppet itself.
  module Logging
    LEVELS = %i[debug info notice warning err alert emerg crit].freeze

    LEVELS.each do |level|
      define_method(level) { |*texts| send_log(level, texts.join(' ')) }
    end

    def send_log(level, message)
      Bunraku.desk.log(level.to_s, message.to_s, log_source)
      nil
    end

    def log_source
      ''
    end

    def log_exception(exception, message = nil, options = {})
      send_log(options[:level] || :err, message.nil? || message == :default ? exception.message : message)
    end

    def warn_once(_kind, key, message, *)
      warning(message) if Bunraku.desk.first?(key)
    end

    def deprecation_warning(message, key = nil)
      warn_once('deprecations', key || message, message)
    end

    def warnonce(message)
      warn_once('', message, message)
    end

    def debug_once(message)
      debug(message) if Bunraku.desk.first?(message)
    end
  end
end

module Puppet
  extend Bunraku::Logging

  PUPPETVERSION = '7.23.0' # the version that modules see

  # The errors that code raises and rescues by name, beside those that all programs have.
  class MissingCommand < Error; end

  class << self
    def [](name)
      value = Bunraku.ask('setting', name.to_s)
      (@own_settings ||= {}).fetch(name.to_sym, value)
    end

    # Sets what modules read; the agent's own setting stays.
    def []=(name, value)
      self[name]
      @own_settings[name.to_sym] = value
    end

    def settings
      Settings.new
    end

    def version
      PUPPETVERSION
    end

    def features
      @features ||= Features.new
    end

    def run_mode
      RunMode.new
    end

    def lookup(name, &block)
      raise Bunraku::Lacking, "Puppet.lookup(:#{name})" unless %i[current_environment root_environment].include?(name) || block

      block ? block.call : Environment.new(self[:environment])
    end

    def newtype(name, options = {}, &block)
      Puppet::Type.newtype(name, options, &block)
    end
  end

  # What `Puppet.settings` is used for.
  class Settings
    def [](name)
      Puppet[name]
    end

    def setting(name)
      Struct.new(:value).new(Puppet[name])
    end

    # The settings of a section of puppet.conf; environments have none of their own here.
    def values(_environment, section)
      SectionSettings.new(section.to_s)
    end

    def use(*); end
  end

  # What `Puppet.settings.values` returns.
  SectionSettings = Struct.new(:section) do
    def interpolate(name)
      Bunraku.ask('setting', name.to_s, section)
    end
    alias_method :lookup, :interpolate
  end

  # The environment that the catalog is of.
  Environment = Struct.new(:name) do
    alias_method :to_s, :name
  end

  # The agent's mode.
  class RunMode
    def name
      :agent
    end

    def agent?
      true
    end

    def master?
      false
    end
    alias server? master?
  end

  # What the host can do: `Puppet.features.root?`. Modules add their own, in lib/puppet/feature.
  class Features
    def initialize
      @tests = {}
      @results = {}
      add(:posix) { true }
      add(:root) { Process.euid.zero? }
      add(:microsoft_windows) { false }
      add(:selinux) { File.exist?('/sys/fs/selinux/enforce') }
      add(:manages_symlinks) { true }
      add(:json) { true }
    end

    def add(name, options = {}, &block)
      libraries = [options[:libs]].flatten.compact
      @results.delete(name.to_sym)
      @tests[name.to_sym] = lambda do
        libraries.all? { |library| loads?(library) } && (block.nil? || block.call ? true : false)
      end
    end

    # Whether a feature is there; one that is not may come during the run.
    def present?(name)
      name = name.to_sym
      Bunraku.desk.require_library("puppet/feature/#{name}") unless @tests.key?(name)
      return false unless @tests.key?(name)

      @results[name] ||= @tests[name].call
    end

    def load
      nil
    end

    def respond_to_missing?(name, all = false)
      name.to_s.end_with?('?') || super
    end

    def method_missing(name, *args)
      name.to_s.end_with?('?') ? present?(name.to_s.chomp('?')) : super
    end

    private

    def loads?(library)
      require library
      true
    rescue LoadError
      false
    end
  end

  # Files of Puppet's file servers: `Puppet::FileServing::Content.indirection.find('puppet:///modules/a/b')`.
  module FileServing
    extend Bunraku::Lacks

    # A file's bytes.
    class Content
      attr_reader :content

      # @return [Content, nil] nil when there is no such file
      def self.find(source, **)
        content = Bunraku.ask('file_content', source.to_s)
        content && new(content)
      end

      def self.indirection
        self
      end

      def initialize(content)
        @content = content
      end
    end
  end

  # Modules ask whether they run on Windows.
  module Pops
    extend Bunraku::Lacks
  end
end
