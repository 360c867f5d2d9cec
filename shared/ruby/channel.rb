# frozen_string_literal: true

# The frames between a program of ours in Ruby and the process that started it: `ruby PROGRAM DESCRIPTOR`.
#
# Both sides send frames over one socket: four bytes of length, then JSON. The process sends an `op` and receives a `value` or an
# `error`. Before that it may be asked (`ask`), and its answer may be preceded by another `op`: each side keeps a stack, and the last
# question is answered first. A program has a desk, whose methods are the ops, and the module Wire, which makes JSON of values.

require 'json'

module Bunraku
  # The folders of our own Ruby: what is raised there is told at the module's line that called it.
  OWN = [File.dirname(File.realpath(__FILE__))] # rubocop:disable Style/MutableConstant -- each program adds its own

  # An error with which the other side answered; `origin` is its number for it.
  module Origin
    attr_accessor :origin
  end

  # A module's Ruby must not rescue this: the other side continues elsewhere.
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

  # A question in a process that a module's Ruby has forked.
  class ForkedError < StandardError; end

  # The socket, and the order of questions and answers.
  class Channel
    def initialize(descriptor, desk)
      @desk = desk
      @in = IO.for_fd(descriptor, 'rb', autoclose: false)
      @out = IO.for_fd(descriptor, 'wb', autoclose: false)
      @out.sync = true
      @in.close_on_exec = true # programs that a template starts may outlive this one
      @depth = 0
      @owner = Process.pid
    end

    def serve
      while (message = read)
        answer(message)
      end
    end

    # Returns the other side's answer; `top`: for top scope, not for the calling one.
    def ask(what, *args, top: false)
      raise ForkedError, "A process that #{File.basename($PROGRAM_NAME)} forked cannot ask for #{what}" if forked?

      write('ask' => what, 'top' => top, 'args' => Wire.dump(args))
      loop do
        message = read or exit!(0)
        next answer(message) if message.key?('op')
        raise Passing, message['passing'], [] if message.key?('passing')
        return Wire.load(message['value']) unless message.key?('raised')

        raise @desk.raised(message['message']).extend(Origin).tap { |error| error.origin = message['raised'] }
      end
    end

    # Whether this is a copy of the process, which a module's Ruby has made: the socket is the original's.
    def forked?
      Process.pid != @owner
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
      place = (error.backtrace || []).find { |line| !line.start_with?(*OWN, '<internal:') }.to_s
      place = error.message if error.is_a?(SyntaxError)
      file, line = place.match(/\A(.+?):(\d+)/)&.captures
      { 'class' => error.class.name.to_s, 'message' => Wire.text(error.is_a?(SystemExit) ? 'exit was called' : error.to_s),
        'file' => file && Wire.text(file), 'line' => line.to_i,
        'origin' => error.is_a?(Origin) ? error.origin : nil, 'lacks' => error.is_a?(Lacking) ? error.what : nil,
        'wrapped' => Bunraku.wrapped(error) }
    end

    def read
      head = @in.read(4)
      return if head.nil? || head.bytesize < 4

      JSON.parse(@in.read(head.unpack1('N')).force_encoding(Encoding::UTF_8), max_nesting: false)
    end

    def write(message)
      exit!(message.key?('error') ? 1 : 0) if forked? # it came back from what it was forked for
      body = JSON.generate(message, max_nesting: 0)
      @out.write([body.bytesize].pack('N') + body.b)
    end
  end

  class << self
    attr_reader :channel, :desk

    def ask(what, *args, top: false)
      @channel.ask(what, *args, top: top)
    end

    # Returns what the log says of the errors that an error was made of.
    def wrapped(error)
      original = error.respond_to?(:original) ? error.original : nil
      original.is_a?(Exception) ? "\nWrapped exception:\n#{Wire.text(original.message)}#{wrapped(original)}" : ''
    end

    def run(descriptor, desk)
      parent = Process.ppid
      Thread.new do
        sleep 1 while Process.ppid == parent
        exit!(1)
      end
      @desk = desk
      @channel = Channel.new(descriptor, desk)
      @channel.serve
    end
  end
end
