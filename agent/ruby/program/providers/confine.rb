# frozen_string_literal: true

module Bunraku
  # The conditions under which a provider fits this host.
  class Confines
    def initialize
      @all = []
    end

    def initialize_copy(other)
      super
      @all = @all.dup
    end

    # @param conditions [Hash] `exists`, `true`, `false`, `feature`, or facts, with their values
    def add(conditions, &block)
      label = conditions.is_a?(Hash) ? conditions.delete(:for_binary) : nil
      if block && !conditions.is_a?(Hash)
        @all << [conditions.to_s.to_sym, block, label]
        return
      end
      conditions.each { |test, values| @all << [test.to_sym, values, label] }
    end

    def programs(names)
      names.each { |name, lookup| @all << [:program, lookup, name] }
    end

    # Returns what is missing, one text for each condition.
    def unmet
      @all.map { |test, values, label| unmet_one(test, values, label) }.compact
    end

    private

    def unmet_one(test, values, label)
      case test
      when :program then values.call ? nil : "program #{label}"
      when :exists then listed(values).reject { |path| path && found?(path, label) }.map { |path| "file #{path}" }.first
      when true, :true then listed(values).all? ? nil : 'a condition of its own' # rubocop:disable Lint/BooleanSymbol -- what modules write
      when false, :false then listed(values).none? ? nil : 'a condition of its own' # rubocop:disable Lint/BooleanSymbol
      when :feature then listed(values).reject { |name| Puppet.features.present?(name) }.map { |name| "feature #{name}" }.first
      when :any then listed(values).any? ? nil : 'a condition of its own'
      else Confines.fact?(test, values) ? nil : "fact #{test} in #{listed(values).join(', ')}"
      end
    end

    def listed(values)
      values = values.call if values.respond_to?(:call)
      [values].flatten.map { |value| value.respond_to?(:call) ? value.call : value }
    end

    def found?(path, for_binary)
      for_binary ? Puppet::Util.which(path) : File.exist?(path.to_s)
    end

    # Whether a fact has one of the values, compared as text without regard to case.
    def self.fact?(name, values)
      actual = Facter.value(name).to_s.downcase
      [values].flatten.any? { |value| value.to_s.downcase == actual }
    end

    # Whether a fact has one of the values or matches one of the patterns; a fact without a value has none.
    def self.fact_matches?(name, values)
      actual = Facter.value(name).to_s.downcase
      !actual.empty? && [values].flatten.any? { |value| value.is_a?(Regexp) ? value.match?(actual) : value.to_s.downcase == actual }
    end
  end
end
