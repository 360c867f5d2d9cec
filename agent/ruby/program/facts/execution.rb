# frozen_string_literal: true

# Facter's interface to custom facts.
module Facter
  # Commands and kinds of resolutions.
  module Core
    # Runs commands through a shell, in the locale C, and returns what they print.
    module Execution
      class ExecutionFailure < StandardError; end

      # Raised when a command takes too long.
      class CommandTimeout < StandardError; end

      SECONDS = 300
      MORE_FOLDERS = %w[/sbin /usr/sbin].freeze
      OPTIONS = %i[on_fail expand logger timeout].freeze
      LOCALE = { 'LC_ALL' => 'C', 'LANG' => 'C' }.freeze

      module_function

      def search_paths
        ENV['PATH'].to_s.split(File::PATH_SEPARATOR) + MORE_FOLDERS
      end

      def absolute_path?(path, _platform = nil)
        path.start_with?('/')
      end

      def which(program)
        paths = absolute_path?(program) ? [program] : search_paths.map { |folder| File.join(folder, program) }
        paths.find { |path| File.executable?(path) && File.file?(path) }
      end

      # Returns a command with its program's whole path, in quotes if that has blanks; nil when there is no such program.
      def expand_command(command)
        quoted = command.match(/\A"(.+?)"(?:\s+(.*))?/) || command.match(/\A'(.+?)'(?:\s+(.*))?/)
        program, words = quoted ? quoted.captures : command.split(' ', 2) # rubocop:disable Style/RedundantArgument
        path = program && which(program) or return
        path = "'#{path}'" if path.match?(/\s/)
        words ? "#{path} #{words}" : path
      end

      def with_env(variables)
        before = variables.map { |name, _| [name, ENV[name]] }
        variables.each { |name, value| ENV[name] = value }
        yield
      ensure
        before&.each { |name, value| ENV[name] = value }
      end

      def exec(command)
        execute(command, on_fail: nil)
      end

      # Returns what a command prints, without blanks around it; what `on_fail` says if there is none or it cannot be run.
      def execute(command, options = {})
        on_fail = options.fetch(:on_fail, :raise)
        unknown = options.keys - OPTIONS
        unless unknown.empty?
          Facter.warn("Unexpected key passed to Facter::Core::Execution.execute option: #{unknown.join(',')} - valid keys: #{OPTIONS.join(',')}")
        end
        plain = options[:logger] || (options[:expand] == false && builtin?(command))
        line = plain ? command : expand_command(command)
        return failed(on_fail, "Could not execute '#{command}': command not found") if line.nil?

        output, = execute_command(line, on_fail, options[:logger], seconds_in(options))
        output
      end

      # Returns what a command prints, and what it says of errors.
      def execute_command(command, on_fail = nil, logger = nil, timeout = nil)
        Facter.debug("Executing command: #{command}")
        output, errors = run(command.to_s, timeout || SECONDS, on_fail)
        (logger || Facter).debug("Command #{command} completed with the following stderr message: #{errors.strip}") unless errors.empty?
        [output.strip, errors]
      rescue StandardError => e
        message = "Failed while executing '#{command}': #{e.message}"
        return failed(on_fail, message) unless logger

        logger.debug(message)
        ''
      end

      def failed(on_fail, message)
        raise ExecutionFailure, message if on_fail == :raise

        on_fail
      end
      private_class_method :failed

      def seconds_in(options)
        seconds = (options[:timeout] || options[:time_limit] || options[:limit]).to_i
        seconds.positive? ? seconds : nil
      end
      private_class_method :seconds_in

      # A word that only a shell knows, such as `type`.
      def builtin?(command)
        Open3.capture2("type #{command}", err: File::NULL).first.chomp.match?(/builtin/)
      end
      private_class_method :builtin?

      def run(command, seconds, on_fail)
        out, out_end = IO.pipe
        err, err_end = IO.pipe
        pid = spawn(LOCALE, command, in: File::NULL, out: out_end, err: err_end, **Bunraku.memory_for_commands)
        [out_end, err_end].each(&:close)
        readers = [out, err].map { |pipe| Thread.new { pipe.read } }
        begin
          read_within(seconds, readers)
        rescue CommandTimeout
          message = "Timeout encounter after #{seconds}s, killing process with pid: #{pid}"
          Process.kill('KILL', pid)
          raise StandardError, message if on_fail == :raise

          Facter.debug(message)
          ['', '']
        ensure
          readers.each(&:kill)
          Process.wait(pid) # so that $? is its exit code
        end
      ensure
        [out, out_end, err, err_end].each { |pipe| pipe&.close }
      end
      private_class_method :run

      def read_within(seconds, readers)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        readers.map do |reader|
          left = deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
          raise CommandTimeout unless reader.join([left, 0].max)

          reader.value
        end
      end
      private_class_method :read_within
    end
  end
end
