# frozen_string_literal: true

module Puppet
  # Helpers that types and providers call.
  module Util
    extend Bunraku::Lacks

    module_function

    def which(program)
      program = program.to_s
      return (File.file?(program) && File.executable?(program) ? program : nil) if program.start_with?('/')

      ENV['PATH'].to_s.split(':').map { |folder| File.join(folder, program) }.find { |path| File.file?(path) && File.executable?(path) }
    end

    def uid(name)
      POSIX.uid(name)
    end

    def gid(name)
      POSIX.gid(name)
    end

    def withumask(mask)
      before = File.umask(mask)
      yield
    ensure
      File.umask(before)
    end

    def withenv(variables, _mode = nil)
      before = ENV.to_hash
      variables.each { |name, value| ENV[name.to_s] = value }
      yield
    ensure
      ENV.replace(before)
    end

    def get_env(name, _mode = nil)
      ENV[name]
    end

    def set_env(name, value = nil, _mode = nil)
      ENV[name] = value
    end

    def get_environment(_mode = nil)
      ENV.to_hash
    end

    def benchmark(*)
      yield
    end

    def thinmark
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end

    def symbolizehash(hash)
      hash.map { |key, value| [key.respond_to?(:to_sym) ? key.to_sym : key, value] }.to_h
    end

    def uri_encode(path)
      URI::DEFAULT_PARSER.escape(path)
    end

    # Returns the path of a file: URI; nil for what is no URI.
    def uri_to_path(uri)
      URI::DEFAULT_PARSER.unescape(uri.path) if uri.is_a?(URI::Generic)
    end

    def execpipe(command, failonfail = true, &block)
      Puppet::Util::Execution.execpipe(command, failonfail, &block)
    end

    def execfail(command, exception)
      Puppet::Util::Execution.execfail(command, exception)
    end

    # Writes a file at one go: to a new one beside it, which then takes its place.
    def replace_file(path, default_mode = 0o644)
      path = File.realpath(path) if File.exist?(path)
      there = File.exist?(path) ? File.stat(path) : nil
      temporary = Tempfile.create(File.basename(path), File.dirname(path))
      temporary.binmode
      yield temporary
      temporary.flush
      temporary.fsync
      temporary.chmod(there ? there.mode & 0o7777 : (default_mode || 0o644))
      temporary.chown(there.uid, there.gid) if there && Process.euid.zero?
      temporary.close
      File.rename(temporary.path, path)
    ensure
      File.unlink(temporary.path) if temporary && File.exist?(temporary.path)
    end

    # The levels of messages, for what includes it.
    module Logging
      include Bunraku::Logging
    end

    # Documentation in a class body.
    module Docs
      attr_accessor :doc

      def desc(text)
        @doc = text
      end

      def markdown_header(text, _level)
        "#{text}\n"
      end

      def doctable(*)
        ''
      end

      def pad(text, length)
        text.to_s.ljust(length)
      end

      def self.scrub(text)
        text.to_s.gsub(/^\s+/, '').strip
      end
    end

    # Comparison of packages' versions.
    module Package
      extend Bunraku::Lacks

      module_function

      def versioncmp(one, two, ignore_trailing_zeroes = false)
        left, right = [one, two].map { |version| (ignore_trailing_zeroes ? version.sub(/(\.0)+\z/, '') : version).scan(/[-.]|\d+|[^-.\d]+/) }
        until left.empty? || right.empty?
          result = compare_parts(left.shift, right.shift)
          return result unless result.zero?
        end
        one <=> two
      end

      def compare_parts(left, right)
        return 0 if left == right

        %w[- .].each do |separator|
          return -1 if left == separator
          return 1 if right == separator
        end
        return left.to_i <=> right.to_i if left.match?(/\A[1-9]\d*\z|\A0\z/) && right.match?(/\A[1-9]\d*\z|\A0\z/)

        left.upcase <=> right.upcase
      end
      private_class_method :compare_parts
    end

    # Names that files for Windows mention while they are read elsewhere.
    module Windows
      extend Bunraku::Lacks

      class Error < Puppet::Error; end

      %i[ADSI File Registry Service SID EventLog Security Process String].each { |name| const_set(name, Module.new) }
    end

    # What many modules ask about Windows and others.
    module Platform
      module_function

      def windows?
        false
      end

      def jruby?
        false
      end

      def default_paths
        []
      end
    end

    # Checks of names of files; kept for what includes it.
    module Checksums
      module_function

      { md5: 'MD5', sha1: 'SHA1', sha256: 'SHA256', sha384: 'SHA384', sha512: 'SHA512' }.each do |name, digest|
        define_method(name) { |content| Digest.const_get(digest).hexdigest(content) }
        define_method(:"#{name}_file") { |path, *| Digest.const_get(digest).file(path).hexdigest }
      end
    end

    # Errors that types, parameters and providers raise; their methods are public, as a provider may call `resource.fail`.
    module Errors
      extend self

      def fail(*args)
        raise Puppet::Error, args.last.to_s unless args.first.is_a?(Class)

        raise args.first, args.drop(1).join(' ')
      end

      def devfail(message)
        raise Puppet::DevError, message
      end
    end

    # User and group names and numbers.
    module POSIX
      module_function

      def uid(name)
        return name if name.is_a?(Integer)

        name.to_s.match?(/\A\d+\z/) ? name.to_i : Etc.getpwnam(name.to_s).uid
      rescue ArgumentError
        nil
      end

      def gid(name)
        return name if name.is_a?(Integer)

        name.to_s.match?(/\A\d+\z/) ? name.to_i : Etc.getgrnam(name.to_s).gid
      rescue ArgumentError
        nil
      end
    end
  end
end
