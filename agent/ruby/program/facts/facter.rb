# frozen_string_literal: true

# Facter's interface to custom facts, as version 4 has it.
module Facter
  # A fact with its value, as `Facter.fact` gives it.
  class ResolvedFact
    attr_reader :name, :value

    def initialize(name, value)
      @name = name
      @value = Bunraku::FactValues.with_text_keys(value)
    end

    def to_s
      @value.to_s
    end
  end

  class << self
    def add(name, options = {}, &block)
      Bunraku.desk.facts.add(name, options.merge(fact_type: :custom), &block)
      nil
    end

    def define_fact(name, options = {}, &block)
      Bunraku.desk.facts.define(name, options.merge(fact_type: :custom), &block)
    end

    # Returns a fact with its value; nil when there is none of that name.
    def fact(name)
      query = name.to_s.downcase
      Bunraku.desk.resolved.fetch(query) do
        found = Bunraku.desk.search(query) or return
        Bunraku.desk.resolved[query] ||= ResolvedFact.new(query, found.first)
      end
    end
    alias [] fact

    def value(name)
      fact(name)&.value
    end

    def version
      Bunraku.desk.facter_version
    end

    def to_hash
      Bunraku.desk.facts.load_all
      own = Bunraku.desk.facts.names.map { |name| [name, Bunraku.desk.facts[name].value] }.to_h
      Bunraku.desk.machine.merge(Bunraku::FactValues.with_text_keys(own.compact))
    end
    alias to_h to_hash

    def list
      to_hash.keys.sort
    end

    def each(&block)
      to_hash.each(&block)
      self
    end

    def collection
      Bunraku.desk.facts
    end

    def loadfacts
      Bunraku.desk.facts.load_all
      nil
    end

    def flush
      Bunraku.desk.facts.flush
      nil
    end

    def clear
      flush
      Bunraku.desk.resolved.clear
      clear_messages
      reset
    end

    def reset
      Bunraku.desk.forget_facts
      nil
    end

    def clear_messages
      Bunraku.desk.forget_messages
      nil
    end

    def search(*folders)
      Bunraku.desk.facts.folders.concat(folders - Bunraku.desk.facts.folders)
      nil
    end

    def search_path
      Bunraku.desk.facts.folders.dup
    end

    def core_value(name)
      Bunraku.desk.core_value(name.to_s)
    end

    def debugging?
      Bunraku.desk.debug?
    end

    def trace?
      false
    end

    def debug(message)
      Bunraku.desk.log('debug', message.to_s, 'Facter') if debugging?
    end

    def debugonce(message)
      debug(message) if debugging? && Bunraku.desk.first?("debug #{message}")
    end

    def warn(message)
      Bunraku.desk.log('warning', message.to_s, 'Facter')
    end

    def warnonce(message)
      warn(message) if Bunraku.desk.first?("warn #{message}")
    end

    def log_exception(exception, message = nil)
      text = message.nil? || message == '' || message == :default ? nil : message.to_s
      Bunraku.desk.log('err', text || (exception.is_a?(Exception) ? exception.message : exception.to_s), 'Facter')
    end
  end
end
