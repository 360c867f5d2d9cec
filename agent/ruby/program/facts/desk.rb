# frozen_string_literal: true

module Bunraku
  class << self
    # Returns options for `spawn` that give a command the memory that this process had at first.
    attr_accessor :memory_for_commands
  end
  self.memory_for_commands = {}

  # The operations that the agent may ask for.
  class FactDesk
    include DeskBasics

    attr_reader :facts, :resolved, :facter_version

    def initialize
      @once = {}
      @resolved = {} # what `Facter.value` was asked for, by name
      @features = {}
    end

    # @param given [Hash] `folders` and `libraries`; `core`, `fallbacks`, `external` and `environment`: values by name; `skipped`: files;
    #   `broken`: names of facts that get no value; `debug`: whether debug messages are logged; `memory`: bytes; `facter_version`
    def setup(given)
      @given = given
      @facter_version = given['facter_version']
      Facter.const_set(:VERSION, @facter_version) unless Facter.const_defined?(:VERSION, false)
      @libraries = given['libraries']
      $LOAD_PATH.unshift(*@libraries)
      limit_memory(given['memory'])
      @facts = FactCollection.new(given['folders'], given['skipped'])
      add_known
      nil
    end

    # Reads all files; returns their facts in the order of declaration: name, file and line of each.
    def load
      @facts.load_all
      @facts.custom.map { |fact| [fact.name.to_s, *(fact.location || ['', 0])] }
    end

    # Returns a fact's value; nil: there is none.
    def resolve(name)
      found = @facts[name]
      found && FactValues.with_text_keys(found.value)
    rescue RuntimeError => e
      log('failure', "Error while resolving custom fact fact='#{name}': #{e.message}", 'Facter')
      nil
    end

    # --- for the rest of this program

    # Yields; the agent knows by what it is kept waiting, should this process hang or die.
    def within(kind, name, file = '', line = 0)
      return yield if apart?

      Bunraku.ask('enter', kind, name, file.to_s, line)
      begin
        yield
      ensure
        Bunraku.ask('leave') unless apart?
      end
    end

    def log(level, message, source)
      Bunraku.ask('log', level, Wire.text(message), source) unless apart?
      nil
    end

    def debug?
      @given['debug']
    end

    def broken?(name)
      @given['broken'].include?(name)
    end

    # Returns a fact of the machine that dots may lead into; nil: there is none.
    def core_value(name)
      dug(@given['core'], name)
    end

    def fallback(name)
      dug(@given['fallbacks'], name)
    end

    # Returns the facts that no file of a module declares.
    def machine
      @given['fallbacks'].merge(@given['core'])
    end

    # Returns the value of a name in a list of one; nil when there is nothing of that name.
    def search(query)
      @facts.load(query)
      @facts.load_all unless @facts[query] || leaf?(core_value(query))
      fact, path = @facts.matching(query)
      value = FactValues.with_text_keys(fact&.value)
      return [value] if fact && path.empty?

      inside = dug(value, path.join('.')) if value.is_a?(Hash)
      [inside, core_value(query), fallback(query)].find { |each| !each.nil? }&.yield_self { |each| [each] }
    end

    def forget_facts
      @facts.clear
      add_known
    end

    def forget_messages
      @once.clear
    end

    private

    def add_known
      @facts.add_known(@given['external'], FactCollection::EXTERNAL_WEIGHT)
      @facts.add_known(@given['environment'], FactCollection::ENVIRONMENT_WEIGHT)
    end

    def apart?
      Bunraku.channel.apart?
    end

    def leaf?(value)
      !value.nil? && !value.is_a?(Hash)
    end

    def dug(value, query)
      return value[query] if value.key?(query)

      query.split('.').reduce(value) do |inside, word|
        case inside
        when Hash then inside[word]
        when Array then word.match?(/\A\d+\z/) ? inside[word.to_i] : nil
        end
      end
    end

    # Commands get what this process had: some reserve much more than they use.
    def limit_memory(bytes)
      return if bytes.zero?

      before = Process.getrlimit(:DATA)
      Bunraku.memory_for_commands = { rlimit_data: before }
      Process.setrlimit(:DATA, [bytes, *before].min, before.last)
    end
  end
end
