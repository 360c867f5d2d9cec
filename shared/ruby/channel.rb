# frozen_string_literal: true

# The frames between a program of ours in Ruby and the process that started it: `ruby PROGRAM DESCRIPTOR`.
#
# Both sides send frames over one socket: four bytes of length, then JSON. The process sends an `op` and receives a `value` or an
# `error`. Before that it may be asked (`ask`), and its answer may be preceded by another `op`: each side keeps a stack, and the last
# question is answered first. A program has a desk, whose methods are the ops, and the module Wire, which makes JSON of values.
#
# Each side numbers its questions from 1, and an answer has the number of its question. A message with another number than the expected
# one ends the process: what is read is never taken for something else.

require 'json'
require_relative 'printing'

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

  # A question in a thread whose call has been answered: it would count as part of the next call, which may be about another node.
  class LateError < StandardError; end

  # The socket, and the order of questions and answers.
  class Channel
    OUT_OF_STEP = 76 # the exit code of a process that lost the order of questions and answers
    INTERRUPTIBLE = { Object => :immediate }.freeze
    UNINTERRUPTED = { Object => :never }.freeze
    IDLE = { SignalException => :immediate, Object => :never }.freeze

    def initialize(descriptor, desk)
      @desk = desk
      @in = IO.for_fd(descriptor, 'rb', autoclose: false)
      @out = IO.for_fd(descriptor, 'wb', autoclose: false)
      @out.sync = true
      @in.close_on_exec = true # programs that a template starts may outlive this one
      @owner = Process.pid
      @json = JSON.state.new(max_nesting: 0)
      @asked = 0
      @received = 0
      @open = [] # number and thread of each question that is being answered here, the innermost last
      @turn = Mutex.new # of the thread that has sent a message and not yet read the next one
      @answered = ConditionVariable.new
      @threads = nil # the group of the threads of the outermost question
    end

    def serve
      Thread.handle_interrupt(IDLE) do
        while (message = read)
          drop_interruptions
          Printing.remaining = Printing::LIMIT
          Bunraku.exhausted = nil
          (@threads = ThreadGroup.new).add(Thread.current)
          reply = answer(message)
          @desk.forget_blocks
          reply['exhausted'] = true if Bunraku.exhausted
          in_order(message, reply) do
            @threads = nil
            write(reply)
          end
        end
      end
    end

    # Returns the other side's answer; `top`: for top scope, not for the calling one. Threads ask one after the other.
    #
    # A time-out, another thread or a signal interrupts it only while it answers another question, which runs a block or function.
    def ask(what, *args, top: false)
      raise ForkedError, "A process that #{File.basename($PROGRAM_NAME)} forked cannot ask for #{what}" if forked?

      question = { 'ask' => what, 'top' => top, 'args' => Wire.dump(args) }
      Thread.handle_interrupt(UNINTERRUPTED) { complete(question) }
    end

    # Whether this is a copy of the process, which a module's Ruby has made: the socket is the original's.
    def forked?
      Process.pid != @owner
    end

    # In a copy of this process, which may stay for long: only the original has the socket.
    def close
      @in.autoclose = true
      [@in, @out].each(&:close)
    rescue IOError # a module has closed them
      nil
    end

    # Whether the current thread cannot ask: it is in a copy of the process, or outlived the call that started it.
    def apart?
      forked? || !Thread.current.group.equal?(@threads)
    end

    private

    def complete(question)
      message = @turn.synchronize do
        raise LateError, "A thread cannot ask for #{question['ask']} after the call that started it" if apart?

        exchange(question.merge!('number' => @asked += 1))
      end
      message = answer_within(question, message) while message.key?('op')
      expect(message['number'] == question['number'])
      raise Passing, message['passing'], [] if message.key?('passing')
      return Wire.load(message['value']) unless message.key?('raised')

      raise @desk.raised(message['message']).extend(Origin).tap { |error| error.origin = message['raised'] }
    end

    # Answers what is asked before `question` is answered; returns the next message. A block may leave the whole question, by `throw`,
    # `break` or `return`: then the other side gives up what called the block.
    def answer_within(question, message)
      reply = following = nil
      begin
        reply = answer(message)
      ensure
        following = in_order(message, reply) { exchange(reply || { 'left' => true, 'number' => message['number'] }) }
        expect(reply || (following.key?('passing') && following['number'] == question['number']))
      end
      following
    end

    # Yields when a question is the innermost one: the other side expects the answer to that.
    def in_order(message, reply)
      exit!(reply.nil? || reply.key?('error') ? 1 : 0) if forked? # it came back from what it was forked for
      @turn.synchronize do
        until @open.last[0] == message['number']
          expect(@open.last[1] != Thread.current) # or a Fiber of this thread has left it unanswered
          @answered.wait(@turn)
        end
        @open.pop
        yield.tap { @answered.broadcast }
      end
    end

    # Sends a message and returns the next one. A message left unread would be taken for another answer, so the process ends then.
    def exchange(message)
      following = nil
      write(message)
      following = read or exit!(0)
    rescue IOError, SystemCallError # a module has closed the socket
      exit!(1)
    ensure
      expect(following)
    end

    def expect(condition)
      exit!(OUT_OF_STEP) unless condition
    end

    # A thread that outlived its call may interrupt this one between two questions: that is no part of the next one.
    def drop_interruptions
      Thread.handle_interrupt(INTERRUPTIBLE) { Thread.pass } if Thread.pending_interrupt?
    rescue Exception # rubocop:disable Lint/RescueException -- whatever a thread raises
      retry
    end

    def answer(message)
      args = Wire.load(message['args'])
      reply = { 'value' => Wire.dump(Thread.handle_interrupt(INTERRUPTIBLE) { @desk.public_send(message['op'], *args) }) }
    rescue Passing => e
      reply = { 'passing' => e.id }
    rescue Exception => e # rubocop:disable Lint/RescueException -- also SyntaxError, SystemStackError, SystemExit
      reply = { 'error' => Bunraku.described(e) }
    ensure
      reply&.merge!(@desk.notes, 'number' => message['number'])
    end

    def read
      head = @in.read(4)
      return if head.nil? || head.bytesize < 4

      message = JSON.parse(@in.read(head.unpack1('N')).force_encoding(Encoding::UTF_8), max_nesting: false)
      if message.key?('op')
        expect(message['number'] == (@received += 1))
        @open << [message['number'], Thread.current]
      end
      message
    end

    def write(message)
      body = @json.generate(message).b
      @out.write([body.bytesize].pack('N') << body)
    end
  end

  # An error that says that this process has no descriptors or memory left: another process takes its place.
  module Exhausting
    def initialize(*)
      Bunraku.exhausted = true
      super
    end
  end
  [Errno::EMFILE, Errno::ENOMEM].each { |error| error.prepend(Exhausting) }

  # Copies of this process close its socket.
  module Copying
    def daemon(*)
      super.tap { Bunraku.channel&.close }
    end

    # Ruby calls it for all other copies, from 3.1 on.
    def _fork
      super.tap { |pid| Bunraku.channel&.close if pid.zero? }
    end

    def self.begin
      [Kernel, Kernel.singleton_class, Process.singleton_class].each { |place| replace_fork(place) } unless Process.respond_to?(:_fork)
      Process.singleton_class.prepend(self)
    end

    def self.replace_fork(place)
      original = place.instance_method(:fork)
      place.send(:define_method, :fork) do |&block|
        copying = original.bind(self)
        in_copy = block && -> { [Bunraku.channel&.close, block.call] }
        copying.call(&in_copy).tap { |pid| Bunraku.channel&.close unless pid }
      end
      place.send(:private, :fork) if place.equal?(Kernel)
    end
  end
  Copying.begin

  class << self
    attr_reader :channel, :desk
    attr_accessor :exhausted

    def ask(what, *args, top: false)
      @channel.ask(what, *args, top: top)
    end

    def described(error)
      self.exhausted = true if error.is_a?(NoMemoryError)
      place = (error.backtrace || []).find { |line| !line.start_with?(*OWN, '<internal:') }.to_s
      place = error.message if error.is_a?(SyntaxError)
      file, line = place.match(/\A(.+?):(\d+)/)&.captures
      { 'class' => error.class.name.to_s, 'message' => Wire.text(error.is_a?(SystemExit) ? 'exit was called' : error.to_s),
        'file' => file && Wire.text(file), 'line' => line.to_i,
        'origin' => error.is_a?(Origin) ? error.origin : nil, 'lacks' => error.is_a?(Lacking) ? error.what : nil,
        'wrapped' => wrapped(error) }
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
      Printing.begin
      @channel.serve
    end
  end
end
