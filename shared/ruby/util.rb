# frozen_string_literal: true

# Puppet's helpers that modules call in every program of ours.
module Puppet
  module Util
    extend Bunraku::Lacks

    module_function

    WINDOWS_PATH = %r{\A(?:[a-z]:[\\/]|[\\/]{2}[^\\/]+[\\/][^\\/]+)}i.freeze
    private_constant :WINDOWS_PATH

    def absolute_path?(path, platform = :posix)
      return path.match?(platform == :windows ? WINDOWS_PATH : %r{^/}) if path.is_a?(String)

      Puppet.warning("Cannot check if #{path} is an absolute path because it is a '#{path.class}' and not a String'")
      false
    end

    def execute(*args)
      Puppet::Util::Execution.execute(*args)
    end

    def deterministic_rand(seed, max)
      deterministic_rand_int(seed, max).to_s
    end

    def deterministic_rand_int(seed, max)
      Random.new(seed).rand(max)
    end

    # JSON, with an error of its own for what is none.
    module Json
      extend Bunraku::Lacks

      class ParseError < StandardError; end

      def self.load(text, options = {})
        JSON.parse(text, options)
      rescue JSON::ParserError => e
        raise ParseError, e.message
      end

      def self.dump(value, options = {})
        options.fetch(:pretty, false) ? JSON.pretty_generate(value) : JSON.generate(value)
      end
    end

    # YAML of plain values, in which aliases may occur.
    module Yaml
      extend Bunraku::Lacks

      class YamlLoadError < Puppet::Error; end

      def self.safe_load(text, classes = [], name = nil)
        value = ::YAML.safe_load(text, permitted_classes: classes, aliases: true, filename: name)
        value.nil? ? false : value
      rescue ::Psych::Exception => e
        raise YamlLoadError.new(e.is_a?(::Psych::SyntaxError) ? e.message : "(#{name || '<unknown>'}): #{e.message}", e)
      end

      def self.safe_load_file(path, classes = [])
        safe_load(Puppet::FileSystem.read(path, encoding: 'bom|utf-8'), classes, path)
      end

      def self.dump(value, path)
        File.write(path, ::YAML.dump(value))
      end
    end
  end

  # Files, as modules address them through Puppet.
  module FileSystem
    extend Bunraku::Lacks

    module_function

    def exist?(path)
      File.exist?(path)
    end

    def symlink?(path)
      File.symlink?(path)
    end

    def readlink(path)
      File.readlink(path)
    end

    def directory?(path)
      File.directory?(path)
    end

    def file?(path)
      File.file?(path)
    end

    def stat(path)
      File.stat(path)
    end

    def lstat(path)
      File.lstat(path)
    end

    def unlink(*paths)
      File.unlink(*paths)
    end

    def dir_mkpath(path)
      FileUtils.mkdir_p(File.dirname(path))
    end

    def mkpath(path)
      FileUtils.mkdir_p(path)
    end

    def pathname(path)
      Pathname.new(path)
    end

    def dir(path)
      Pathname.new(path).dirname
    end

    def basename(path)
      File.basename(path)
    end

    def read(path, **options)
      File.read(path, **options)
    end

    def binread(path)
      File.binread(path)
    end

    # Text is UTF-8, and a byte order mark is no part of it.
    def read_preserve_line_endings(path)
      File.read(path, mode: 'rb', encoding: 'bom|utf-8')
    end

    def size(path)
      File.size(path)
    end

    def dir_exist?(path)
      File.exist?(File.dirname(path))
    end

    def dir_string(path)
      File.dirname(path)
    end

    def basename_string(path)
      File.basename(path)
    end

    def each_line(path, &block)
      File.foreach(path, &block)
    end

    def expand_path(path, folder = nil)
      File.expand_path(path, folder)
    end

    def open(path, mode, options, &block)
      File.open(path, options, mode, &block)
    end

    def executable?(path)
      File.executable?(path)
    end

    def children(path)
      Pathname.new(path).children
    end

    def chmod(mode, path)
      File.chmod(mode, path)
    end

    def replace_file(path, mode = nil, &block)
      Puppet::Util.replace_file(path, mode || 0o644, &block)
    end

    def touch(path)
      FileUtils.touch(path)
    end
  end
end
