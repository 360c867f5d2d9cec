# frozen_string_literal: true

# Renders templates and runs functions of modules for the compiler that started this program: `ruby host.rb DESCRIPTOR`.
#
# It may ask the compiler for variables, functions and so on; see shared/ruby/channel.rb.

require 'date'
require 'digest'
require 'erb'
require 'set'
require 'time'
require 'yaml'
require_relative '../../shared/ruby/channel'

# Libraries that Puppet has loaded and that modules use without requiring them.
{ Base64: 'base64', CGI: 'cgi', Etc: 'etc', FileUtils: 'fileutils', Forwardable: 'forwardable', IPAddr: 'ipaddr', Logger: 'logger',
  Net: 'net/http', OpenSSL: 'openssl', OpenStruct: 'ostruct', Pathname: 'pathname', Resolv: 'resolv', Ripper: 'ripper', SecureRandom: 'securerandom',
  Singleton: 'singleton', Socket: 'socket', StringIO: 'stringio', Tempfile: 'tempfile', Timeout: 'timeout', URI: 'uri', Zlib: 'zlib' }.each do |name, library|
  autoload(name, library)
end

module Bunraku
  OWN << File.dirname(File.realpath(__FILE__))

  # The operations that the compiler may ask for.
  class Desk
    def initialize
      @templates = {}
      @functions = {}
      @blocks = {}
      @held = {}
      @caches = {}
      @file_data = {}
      @reads = []
      @changes = []
      @compilation = 0
    end

    attr_reader :debug

    # @param libraries [Array<String>] the folders lib/ of the modules
    def setup(libraries)
      $LOAD_PATH.push(*libraries)
      @libraries = libraries.map { |each| "#{each}/" }
      @features = $LOADED_FEATURES.size
      nil
    end

    # Returns the exception for an error of the compiler's.
    def raised(message)
      Puppet::ParseError.new(message)
    end

    # Returns what was read since the last call: the modules' files that were required, and what a module's Ruby read by itself.
    def notes
      notes = {}
      size = $LOADED_FEATURES.size
      if size != (@features || size)
        notes['libraries'] = $LOADED_FEATURES[@features..].select { |each| each.start_with?(*@libraries) }
        @features = size
      end
      notes['reads'], @reads = @reads, [] unless @reads.empty?
      notes['changes'], @changes = @changes, [] unless @changes.empty?
      notes
    end

    def note_read(kind, path, answer)
      @reads << [kind, Wire.string(File.expand_path(path)), answer]
    end

    def library?(name)
      @libraries.any? { |each| File.file?("#{each}#{name}.rb") }
    end

    def template(id, text, file)
      @templates[id] = Puppet::Parser::TemplateWrapper.compiled(text, file)
      nil
    end

    def forget_templates
      @templates.clear
      nil
    end

    def render(id, variables)
      wrapper = @templates.fetch(id).new
      variables.each { |name, value| wrapper.instance_variable_set(:"@#{name}", value) }
      watching(variables) { wrapper.result.to_s }
    end

    # An object of which the compiler has a copy; here it stays the same object while one catalog is compiled.
    def hold(value)
      @held[value.object_id] = value
      value.object_id
    end

    def held(number)
      @held.fetch(number) { raise Puppet::Error, 'An object of an earlier catalog, or of a Ruby that has ended, is used' }
    end

    # The compilation of a catalog begins; `debug`: somebody reads what it logs at that level.
    def begin(debug)
      @debug = debug
      @compilation += 1
      @held.clear
      @caches.clear
      nil
    end

    # The cache of a level and location of Hiera.
    def cache(number)
      @caches[number] ||= BackendCache.new({})
    end

    # Returns what the block makes of the text of a file. While a catalog is compiled a file is the same; after that the compiler is asked,
    # by `current`, for its digest, and for its text if that is not the digest given.
    def file_data(path, current)
      known = @file_data[path]
      if known&.compilation != @compilation
        digest, text = current.call(known&.digest)
        data = text.nil? ? known.data : yield(text)
        @file_data.clear if @file_data.size >= MAX_FILES
        known = @file_data[path] = FileData.new(@compilation, digest, data)
      end
      note_read('data', path, known.digest)
      known.data
    end
    FileData = Struct.new(:compilation, :digest, :data)
    MAX_FILES = 5000

    # Returns how the function `name`, which a file defines, is called.
    def load(id, name, text, file)
      made = Definitions.of(text, file)
      found = made[name] or raise ArgumentError, "#{file} defines #{made.empty? ? 'no function' : made.keys.join(', ')}, not #{name}"
      @functions[id] = found
      found.described
    end

    def call(id, number, args, block)
      watching(args.each_with_index.map { |each, index| [index, each] }) { @functions.fetch(id).call(number, args, block) }
    end

    # Returns what the block does; notes which collections it changes in place, of those given by their places and of variables.
    def watching(places)
      outer, @watch = @watch, Watch.new
      places.each { |place, value| @watch.add(place, value) }
      value = yield
      @changes = @watch.changes
      value
    ensure
      @watch = outer
    end
    private :watching

    # The value of a variable, which a function may change in place.
    def watch(name, top, value)
      @watch&.add([name, top], value)
      value
    end

    # Returns what a pure back end finds for some of the names, each with what it has read: what takes no question and is short.
    def call_each(id, number, names, rest)
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + AHEAD
      @ahead = true
      names.filter_map do |name|
        found_ahead(@functions.fetch(id), number, [name, *rest]) unless Process.clock_gettime(Process::CLOCK_MONOTONIC) > ends
      end
    ensure
      @ahead = false
    end
    AHEAD = 1 # seconds
    SHORT = 1000 # characters

    attr_reader :ahead

    def found_ahead(function, number, args)
      @reads = []
      value = function.call(number, args, nil)
      short = value.is_a?(String) ? value.length <= SHORT : [nil, true, false].include?(value)
      [args[0], true, value, @reads] if short
    rescue NotFound
      [args[0], false, nil, @reads]
    rescue StandardError, ScriptError, SystemStackError, Passing
      nil
    ensure
      @reads = []
    end
    private :found_ahead

    # A block of Ruby's, kept while it may be called.
    def keep(block)
      @blocks[block.object_id] = block
      block.object_id
    end

    def yield(id, args)
      @blocks.fetch(id).call(*args)
    end

    def forget_blocks
      @blocks.clear
    end
  end

  # The collections that a function or template has got: arguments by number, instance variables by name, variables by name and `top`.
  class Watch
    def initialize
      @got = []
    end

    def add(place, value)
      @got << [place, value, value.hash] if value.is_a?(Array) || value.is_a?(Hash)
    end

    # Returns place and value of those that have been changed in place.
    def changes
      @got.filter_map { |place, value, hash| [place, Wire.dump(value)] unless value.hash == hash }
    end
  end

  # Collects the functions that a file defines while it is read.
  module Definitions
    def self.of(text, file)
      check_methods(text, file) if text.include?('newfunction') && text.include?('def')
      @made = {}
      eval(text, TOPLEVEL_BINDING.dup, file, 1) # rubocop:disable Security/Eval -- a module's own code
      @made
    end

    # Raises an error, as Puppet does, for a method that is defined in a file of the 3.x API: it would be one of every object or function.
    def self.check_methods(text, file)
      name, line = find_method(Ripper.sexp(text)) || return
      message = "Illegal method definition of method '#{name}' in source #{file} on line #{line} in legacy function"
      raise SecurityError, message, ["#{file}:#{line}"]
    end
    private_class_method :check_methods

    def self.find_method(part)
      return unless part.is_a?(Array)
      return part[part[0] == :def ? 1 : 3].drop(1).then { |name, place| [name, place[0]] } if %i[def defs].include?(part[0])

      part.each { |each| find_method(each).then { |found| return found if found } }
      nil
    end
    private_class_method :find_method

    def self.add(name, function)
      @made[name.to_s] = function if @made
    end
  end
end

require_relative 'wire'
require_relative 'reads'
require_relative 'lookup'
require_relative 'puppet'
require_relative 'functions'
require_relative 'pson'

Bunraku.run(ARGV.shift.to_i, Bunraku::Desk.new) if $PROGRAM_NAME == __FILE__
