# frozen_string_literal: true

module Bunraku
  # Those of Puppet's own providers that modules' providers have as parents, written anew; they are made when one is asked for.
  module OwnProviders
    module_function

    # Returns the provider of a type by its name; nil when there is none here.
    def find(type, name)
      return nil unless type.name == :service

      case name.to_sym
      when :service then commands_only(type)
      when :base then with_process_table(type)
      end
    end

    def commands_only(type)
      type.provide(:service) { include ServiceCommands }
    end

    def with_process_table(type)
      type.provide(:base, parent: type.provider(:service)) { include ServiceProcesses }
    end

    # Returns what starts and stops a service that a module's Ruby made by itself; nil for other types.
    def of_the_system(resource)
      type = resource.class
      return nil unless type.name == :service

      (@system ||= type.provide(:system, parent: type.provider(:service)) { include SystemServices }).new(resource)
    end
  end

  # A service whose commands are the resource's, or a method's: `startcmd`, `stopcmd`, `restartcmd`, `statuscmd`.
  module ServiceCommands
    def self.included(provider)
      provider.define_singleton_method(:instances) { [] }
    end

    def restart
      return run_and_forget(:restart) if @resource[:restart] || restartcmd

      stop
      start
    end

    def restartcmd; end

    def service_execute(action, command, fail_on_error = true, squelch = false, combine = true)
      execute(command, failonfail: fail_on_error, override_locale: false, squelch: squelch, combine: combine)
    rescue Puppet::ExecutionFailure => e
      raise Puppet::Error.new("Could not #{action} #{@resource.ref}: #{e}", e)
    end

    def service_command(action, fail_on_error = true)
      own = @resource[action]
      service_execute(action, own ? [own] : [public_send("#{action}cmd")].flatten, fail_on_error)
    end

    # Names of old for the same, without the result.
    def texecute(action, command, fail_on_error = true, squelch = false, combine = true)
      service_execute(action, command, fail_on_error, squelch, combine)
      nil
    end

    def ucommand(action, fail_on_error = true)
      service_command(action, fail_on_error)
      nil
    end

    private

    def run_and_forget(action)
      service_command(action)
      nil
    end
  end

  # A service that, without commands, is the process whose command line matches `pattern`.
  module ServiceProcesses
    def status
      return service_command(:status, false).exitstatus.zero? ? :running : :stopped if @resource[:status] || statuscmd

      getpid ? :running : :stopped
    end

    def start
      run_and_forget(:start)
    end

    def stop
      return run_and_forget(:stop) if @resource[:stop] || stopcmd

      pid = getpid
      if pid.nil?
        info("#{name} is not running")
        return false
      end
      Process.kill(:TERM, pid.to_i)
      true
    rescue SystemCallError => e
      raise Puppet::Error.new("Could not kill #{name}, PID #{pid}: #{e.message}", e)
    end

    def startcmd
      @resource[:binary] || raise(Puppet::Error, 'Services must specify a start command or a binary')
    end

    def stopcmd; end

    def statuscmd; end

    private

    # Returns the id of the first process that matches, as text; nil for none.
    def getpid
      raise Puppet::Error, 'Either stop/status commands or a pattern must be specified' unless @resource[:pattern]

      pattern = Regexp.new(@resource[:pattern])
      line = execute('ps -ef').each_line.find { |each| pattern.match?(each) && each.split[1] != Process.pid.to_s }
      line && line.split[1]
    end
  end

  # A service of systemd, where that runs, or else of the scripts of /etc/init.d.
  module SystemServices
    %w[start stop restart status].each { |verb| define_method(:"#{verb}cmd") { SystemService.command(verb, @resource[:name]) } }

    def start
      run_and_forget(:start)
    end

    def stop
      run_and_forget(:stop)
    end

    def status
      service_command(:status, false).exitstatus.zero? ? :running : :stopped
    end
  end
end
