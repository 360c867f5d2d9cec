# frozen_string_literal: true

module Puppet
  module Util
    # Commands: no shell unless asked for, locale C, output and exit code checked.
    module Execution
      extend Bunraku::Lacks

      LOCALE = { 'LANG' => 'C', 'LC_ALL' => 'C', 'LC_MESSAGES' => 'C', 'LC_CTYPE' => 'C', 'LANGUAGE' => 'C' }.freeze
      PERSONAL = { 'HOME' => nil, 'USER' => nil, 'LOGNAME' => nil }.freeze
      NO_OPTIONS = Object.new.freeze

      # A command's output, with its exit code.
      class ProcessOutput < String
        attr_reader :exitstatus

        def initialize(text, exitstatus)
          super(text)
          @exitstatus = exitstatus
        end
      end

      module_function

      # Returns the output; raises ExecutionFailure for an exit code other than 0 when `failonfail`, which is so without options.
      def execute(command, options = NO_OPTIONS)
        given = options.equal?(NO_OPTIONS) ? { failonfail: true } : options
        options = { failonfail: false, uid: nil, gid: nil, combine: options.equal?(NO_OPTIONS), stdinfile: nil, squelch: false,
                    override_locale: true, custom_environment: {}, sensitive: false, cwd: nil, suppress_window: false }.merge(given)
        shown = options[:sensitive] ? '[redacted]' : shown_as(command)
        Puppet.debug("Executing#{with_account(options)}: '#{shown}'")
        output, status = run(command, options)
        raise Puppet::ExecutionFailure, "Execution of '#{shown}' returned #{status}: #{output.strip}" if options[:failonfail] && status != 0

        ProcessOutput.new(options[:squelch] ? '' : output, status)
      rescue SystemCallError => e
        raise Puppet::ExecutionFailure.new("Could not execute posix command: #{e.message}", e)
      end

      def execpipe(command, failonfail = true)
        shown = command.is_a?(Array) ? command.join(' ') : command
        Puppet.debug("Executing '#{shown}'")
        output = IO.popen(LOCALE, "#{shown} 2>&1") { |pipe| yield pipe }
        raise Puppet::ExecutionFailure, output.to_s if failonfail && !$?.success?

        output
      end

      def execfail(command, exception)
        execute(command, failonfail: true, combine: true)
      rescue Puppet::ExecutionFailure => e
        raise exception, e.message, e.backtrace
      end

      def ruby_path
        RbConfig.ruby
      end

      def shown_as(command)
        command.is_a?(Array) ? command.flatten.map(&:to_s).join(' ') : command.to_s
      end
      private_class_method :shown_as

      def with_account(options)
        options[:uid] || options[:gid] ? " with uid=#{options[:uid]} gid=#{options[:gid]}" : ''
      end
      private_class_method :with_account

      def run(command, options)
        Tempfile.create('puppet') do |file|
          words = command.is_a?(Array) ? command.flatten.map(&:to_s) : command.to_s
          # Words are no command line for a shell, but a single one is, in a list too.
          words = words.length > 1 ? [[words.first, words.first], *words.drop(1)] : words.first if words.is_a?(Array)
          pid = start(words, options, file)
          _, status = Process.wait2(pid)
          file.rewind
          output = file.read.force_encoding(Encoding.default_external)
          output = output.scrub unless output.valid_encoding?
          [output, status.exitstatus || (128 + status.termsig.to_i)]
        end
      end
      private_class_method :run

      def start(words, options, file)
        environment = environment(options)
        redirections = redirections(options, file)
        return spawn(environment, *words, **redirections) unless Process.euid.zero? && (options[:uid] || options[:gid])

        start_as(options, file) { exec(environment, *words, **redirections.reject { |name, _| name == :chdir }) }
      end
      private_class_method :start

      # Starts a program whose real account is another one: a shell gives up what only the effective account allows.
      def start_as(options, file)
        fork do
          Dir.chdir(options[:cwd]) if options[:cwd] # which the account may not be allowed to
          SUIDManager.change_privileges(options[:uid], options[:gid], true)
          yield
        rescue StandardError => e
          file.syswrite("Error: Could not execute posix command: #{e.message}\n") if options[:combine]
        ensure
          exit!(1)
        end
      end
      private_class_method :start_as

      def environment(options)
        locale = options[:override_locale] ? LOCALE : {}
        PERSONAL.merge(locale).merge(options[:custom_environment].map { |name, value| [name.to_s, value&.to_s] }.to_h)
      end
      private_class_method :environment

      def redirections(options, file)
        squelched = options[:squelch]
        folder = options[:cwd] ? { chdir: options[:cwd] } : {}
        { in: options[:stdinfile] || '/dev/null', out: squelched ? '/dev/null' : file.fileno,
          err: options[:combine] && !squelched ? file.fileno : '/dev/null', pgroup: true, close_others: true, **folder }
      end
      private_class_method :redirections
    end
  end
end
