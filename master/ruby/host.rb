# frozen_string_literal: true

# Renders templates and runs functions of modules for the compiler that started this program: `ruby host.rb DESCRIPTOR`.
#
# Both sides send frames over one socket: four bytes of length, then JSON. The compiler sends an `op` and receives a `value` or an
# `error`. Before that it may be asked (`ask`) for variables, functions and so on, and its answer may be preceded by another `op`:
# each side keeps a stack, and the last question is answered first.

require 'date'
require 'digest'
require 'erb'
require 'json'
require 'set'
require 'time'
require 'yaml'

# Libraries that Puppet has loaded and that modules use without requiring them.
{ Base64: 'base64', CGI: 'cgi', Etc: 'etc', FileUtils: 'fileutils', Forwardable: 'forwardable', IPAddr: 'ipaddr', Logger: 'logger',
  Net: 'net/http', OpenSSL: 'openssl', OpenStruct: 'ostruct', Pathname: 'pathname', Resolv: 'resolv', SecureRandom: 'securerandom',
  Singleton: 'singleton', Socket: 'socket', StringIO: 'stringio', Timeout: 'timeout', URI: 'uri', Zlib: 'zlib' }.each do |name, library|
  autoload(name, library)
end

module Bunraku
  HOME = File.dirname(File.realpath(__FILE__))

  # An error with which the compiler answered; `origin` is the compiler's number for it.
  module Origin
    attr_accessor :origin
  end

  # Templates and functions must not rescue this: the compiler continues elsewhere.
  class Passing < Exception # rubocop:disable Lint/InheritException
    attr_reader :id

    def initialize(id)
      super('')
      @id = id
    end
  end

  # A part of Puppet's own Ruby that does not exist here.
  class Lacking < NameError
    attr_reader :what

    def initialize(what)
      super("#{what} is not here")
      @what = what
    end
  end

  # The socket, and the order of questions and answers.
  class Channel
    def initialize(descriptor)
      @in = IO.for_fd(descriptor, 'rb', autoclose: false)
      @out = IO.for_fd(descriptor, 'wb', autoclose: false)
      @out.sync = true
      @in.close_on_exec = true # programs that a template starts may outlive this one
      @depth = 0
    end

    def serve(desk)
      @desk = desk
      while (message = read)
        answer(message)
      end
    end

    # Returns the compiler's answer, for the calling scope or for top scope.
    def ask(what, *args, top: false)
      write('ask' => what, 'top' => top, 'args' => Wire.dump(args))
      loop do
        message = read or exit!(0)
        next answer(message) if message.key?('op')
        raise Passing, message['passing'], [] if message.key?('passing')
        return Wire.load(message['value']) unless message.key?('raised')

        raise Puppet::ParseError.new(message['message']).extend(Origin).tap { |error| error.origin = message['raised'] }
      end
    end

    private

    def answer(message)
      @depth += 1
      args = Wire.load(message['args'])
      reply = { 'value' => Wire.dump(@desk.public_send(message['op'], *args)) }
    rescue Passing => e
      reply = { 'passing' => e.id }
    rescue Exception => e # rubocop:disable Lint/RescueException -- also SyntaxError, SystemStackError, SystemExit
      reply = { 'error' => described(e) }
    ensure
      libraries = @desk.new_libraries
      reply['libraries'] = libraries unless libraries.empty?
      @depth -= 1
      @desk.forget_blocks if @depth.zero?
      write(reply)
    end

    def described(error)
      place = (error.backtrace || []).find { |line| !line.start_with?(HOME, '<internal:') }.to_s
      place = error.message if error.is_a?(SyntaxError)
      file, line = place.match(/\A(.+?):(\d+)/)&.captures
      { 'class' => error.class.name.to_s, 'message' => Wire.text(error.is_a?(SystemExit) ? 'exit was called' : error.to_s),
        'file' => file && Wire.text(file), 'line' => line.to_i,
        'origin' => error.is_a?(Origin) ? error.origin : nil, 'lacks' => error.is_a?(Lacking) ? error.what : nil }
    end

    def read
      head = @in.read(4)
      return if head.nil? || head.bytesize < 4

      JSON.parse(@in.read(head.unpack1('N')).force_encoding(Encoding::UTF_8), max_nesting: false)
    end

    def write(message)
      body = JSON.generate(message, max_nesting: 0)
      @out.write([body.bytesize].pack('N') + body.b)
    end
  end

  # The operations that the compiler may ask for.
  class Desk
    def initialize
      @templates = {}
      @functions = {}
      @blocks = {}
      @held = {}
    end

    # @param libraries [Array<String>] the folders lib/ of the modules
    def setup(libraries)
      $LOAD_PATH.push(*libraries)
      @libraries = libraries.map { |each| "#{each}/" }
      @features = $LOADED_FEATURES.size
      nil
    end

    # Returns the files of modules that were required since the last call.
    def new_libraries
      size = $LOADED_FEATURES.size
      return [] if size == (@features || size)

      loaded = $LOADED_FEATURES[@features..].select { |each| each.start_with?(*@libraries) }
      @features = size
      loaded
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
      wrapper.render.to_s
    end

    # An object of which the compiler has a copy; here it stays the same object while one catalog is compiled.
    def hold(value)
      @held[value.object_id] = value
      value.object_id
    end

    def held(number)
      @held.fetch(number)
    end

    def release
      @held.clear
      nil
    end

    # Returns how the function `name`, which a file defines, is called.
    def load(id, name, text, file)
      made = Definitions.of(text, file)
      found = made[name] or raise ArgumentError, "#{file} defines #{made.empty? ? 'no function' : made.keys.join(', ')}, not #{name}"
      @functions[id] = found
      found.described
    end

    def call(id, number, args, block)
      @functions.fetch(id).call(number, args, block)
    end

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

  # Collects the functions that a file defines while it is read.
  module Definitions
    def self.of(text, file)
      @made = {}
      eval(text, TOPLEVEL_BINDING.dup, file, 1) # rubocop:disable Security/Eval -- a module's own code
      @made
    end

    def self.add(name, function)
      @made[name.to_s] = function if @made
    end
  end

  class << self
    attr_reader :channel, :desk

    def ask(...)
      @channel.ask(...)
    end

    def run(descriptor)
      parent = Process.ppid
      Thread.new do
        sleep 1 while Process.ppid == parent
        exit!(1)
      end
      @desk = Desk.new
      @channel = Channel.new(descriptor)
      @channel.serve(@desk)
    end
  end
end

require_relative 'wire'
require_relative 'puppet'
require_relative 'functions'

Bunraku.run(ARGV.shift.to_i) if $PROGRAM_NAME == __FILE__
