# frozen_string_literal: true

# Facts, as types, providers and their libraries ask for them: those of the run.
module Facter
  extend Bunraku::Lacks

  # A fact with its value.
  Fact = Struct.new(:name, :value)

  module_function

  # Returns the value of a fact. One of a module that had none is found out once more, when it is first asked for: a package may
  # have been installed since.
  def value(name)
    name = name.to_s
    found = Bunraku.desk.fact(name)
    return found unless found.nil? && Bunraku.desk.library?("facter/#{name}")

    @late ||= {}
    @late.key?(name) ? @late[name] : @late[name] = Bunraku.ask('fact_now', name)
  end

  # Returns a fact; one that a module declares is there even where it has no value.
  def fact(name)
    found = value(name)
    found.nil? && !Bunraku.desk.library?("facter/#{name}") ? nil : Fact.new(name.to_s, found)
  end

  def [](name)
    fact(name)
  end

  def version
    Bunraku.ask('facter_version')
  end

  def add(*); end

  def to_hash
    Bunraku.ask('facts')
  end
  alias to_h to_hash
  module_function :to_h

  def debug(text)
    Puppet.debug(text)
  end

  def warn(text)
    Puppet.warning(text)
  end
  alias warnonce warn
  module_function :warnonce

  def debugonce(text)
    Puppet.debug_once(text)
  end

  def log_exception(exception, message = nil)
    Puppet.log_exception(exception, message)
  end

  # Commands, as facts run them.
  module Core
    # Runs commands through a shell and returns what they print.
    module Execution
      class ExecutionFailure < StandardError; end

      module_function

      def which(program)
        Puppet::Util.which(program)
      end

      def exec(command)
        execute(command, on_fail: nil)
      end

      def execute(command, options = {})
        output = Puppet::Util::Execution.execute(command, failonfail: false, combine: false, override_locale: true)
        return output.to_s.strip unless output.exitstatus == 127

        missing(command, options)
      rescue Puppet::ExecutionFailure
        missing(command, options)
      end

      def missing(command, options)
        raise ExecutionFailure, "Could not execute '#{command}': command not found" if options.fetch(:on_fail, :raise) == :raise

        options[:on_fail]
      end
      private_class_method :missing
    end
  end

  # What facts of old had.
  module Util
    extend Bunraku::Lacks

    # Runs commands.
    module Resolution
      module_function

      def exec(command)
        Core::Execution.exec(command)
      end

      def which(program)
        Core::Execution.which(program)
      end
    end
  end
end
