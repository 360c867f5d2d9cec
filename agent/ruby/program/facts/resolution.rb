# frozen_string_literal: true

module Bunraku
  # The error of a resolution is in the log; the fact has no value.
  class FactFailed < StandardError; end

  # A condition for a resolution: a block, or a fact and the values or the block that it must satisfy.
  class FactConfine
    def initialize(fact = nil, *values, &block)
      raise ArgumentError, 'The fact name must be provided' unless fact || block
      raise ArgumentError, 'One or more values or a block must be provided' if values.empty? && !block

      @fact = fact
      @values = values
      @block = block
    end

    # Whether it holds; a block that raises an error means that it does not.
    def true?
      return holds? { @block.call } unless @fact

      found = Facter[@fact] or return false
      value = FactValues.comparable(found.value)
      return false if value.nil?
      return holds? { @block.call(value) } if @block

      @values.any? { |each| FactValues.comparable(each) === value } # rubocop:disable Style/CaseEquality -- also regular expressions and classes
    end

    private

    def holds?
      yield ? true : false
    rescue StandardError => e
      Facter.debug("Confine raised #{e.class} #{e}")
      false
    end
  end

  # What all kinds of resolutions have: conditions, a weight, a limit of time.
  module FactResolution
    attr_reader :name, :fact, :fact_type, :confines
    attr_accessor :timeout

    def initialize(name, fact)
      @name = name
      @fact = fact
      @confines = []
    end

    # Sets what `Facter.add` was given beside the name; a kind of resolution says in `accepted` what that may be.
    def options(given)
      unknown = given.keys - accepted
      raise ArgumentError, "Invalid #{kind_in_errors} options #{unknown.inspect}" unless unknown.empty?

      given.each { |option, value| instance_variable_set("@#{option}", value) }
    end

    def has_weight(weight) # rubocop:disable Naming/PredicateName -- Facter's word
      @weight = weight
      self
    end

    # Returns the number of conditions, unless it has a weight of its own.
    def weight
      @weight || @confines.length
    end

    def confine(facts = nil, &block)
      if facts.is_a?(Hash)
        facts.each { |fact, values| @confines << FactConfine.new(fact, *values) }
      elsif block
        @confines << (facts ? FactConfine.new(facts, &block) : FactConfine.new(&block))
      end
    end

    def suitable?
      @confines.all?(&:true?)
    end

    def on_flush(&block)
      @on_flush = block
    end

    def flush
      @on_flush&.call
    end

    def limit
      @timeout || 0
    end

    # Returns the checked value; nil, with an error in the log, when it takes too long or is none. Raises FactFailed for any other error.
    def value
      FactValues.checked(Timeout.timeout(limit) { resolve_value })
    rescue Timeout::Error => e
      report(e, "Timed out after #{limit} seconds while resolving #{described}")
    rescue FactValues::Invalid => e
      report(e, "Fact resolution #{described} resolved to an invalid value: #{e.message}")
    rescue NoMemoryError
      Bunraku.ask('out_of_memory') # what it has taken would be missed by others
    rescue Exception => e # rubocop:disable Lint/RescueException -- a fact that calls exit ends nothing but itself
      report(e, "Error while resolving custom fact #{described}: #{Bunraku.message_of(e)}")
      raise FactFailed
    end

    private

    def described
      "fact='#{@fact.name}', resolution='#{@name || '<anonymous>'}'"
    end

    def report(error, message)
      Bunraku.desk.log('failure', "#{message}#{Bunraku.place_of(error, @fact.location)}", 'Facter')
      nil
    end
  end

  class << self
    def message_of(error)
      case error
      when SystemExit then 'exit was called'
      when Lacking then "it uses #{error.what}, which only Puppet's own Ruby has"
      else error.message
      end
    end

    # Returns where a module's file raised an error, in brackets; without a line of it, where the fact is declared.
    def place_of(error, declared)
      line = (error.backtrace || []).find { |each| each.match?(/\A\//) && !each.start_with?(*OWN, *OUTSIDE) }
      file, number = line ? line.match(/\A(.+?):(\d+)/).captures : declared
      file ? " (file: #{file}#{number ? ", line: #{number}" : ''})" : ''
    end
  end

  # The folders of Ruby's own library and of gems.
  OUTSIDE = [RbConfig::CONFIG['rubylibprefix'], *(defined?(Gem) ? Gem.path : [])].freeze
end

module Facter
  # What facts consist of, and what facts of old called.
  module Util
    # A way to find out a fact's value: a block, or a command.
    class Resolution
      include Bunraku::FactResolution

      class << self
        def which(program)
          Core::Execution.which(program)
        end

        def exec(command)
          Core::Execution.exec(command)
        end

        def with_env(variables, &block)
          Core::Execution.with_env(variables, &block)
        end
      end

      attr_writer :name

      def resolution_type
        :simple
      end

      # Runs the block that describes this resolution.
      def evaluate(&block)
        Facter.warn("Already evaluated #{@name} at #{@evaluated_at}, reevaluating anyways") if @evaluated_at
        instance_eval(&block)
        @evaluated_at = block.source_location&.join(':')
      end

      def setcode(command = nil, &block)
        raise ArgumentError, 'You must pass either code or a block' unless command || block

        @code = command ? -> { output_of(command) } : block
        self
      end

      private

      def accepted
        %i[name value timeout weight fact_type file is_env]
      end

      def kind_in_errors
        'resolution'
      end

      def resolve_value
        @value.nil? ? @code&.call : @value
      end

      def output_of(command)
        output = Core::Execution.execute(command, on_fail: nil)
        output.nil? || output.empty? ? nil : output
      end
    end

    # Files that may not be there.
    module FileHelper
      module_function

      def safe_read(path, result_if_not_readable = '')
        File.readable?(path) ? File.read(path, encoding: Encoding::UTF_8) : not_readable(path, result_if_not_readable)
      end

      def safe_readlines(path, result_if_not_readable = [], eol = "\n", chomp: false)
        File.readable?(path) ? File.readlines(path, eol, chomp: chomp, encoding: Encoding::UTF_8) : not_readable(path, result_if_not_readable)
      end

      def not_readable(path, result)
        Facter.debug("File at: #{path} is not accessible.")
        result
      end
      private_class_method :not_readable
    end
  end
end
