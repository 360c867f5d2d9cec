# frozen_string_literal: true

module Facter
  module Util
    # A fact with its resolutions, of which the heaviest that suits and gives a value counts.
    class Fact
      attr_reader :name, :location, :options
      attr_accessor :used_resolution_weight

      def initialize(name, options = {})
        @name = name
        @options = options
        @resolutions = []
        @used_resolution_weight = 0
      end

      # Whether a file of a module has it, not only a facts.d folder or the environment.
      def custom?
        @resolutions.any? { |each| each.fact_type == :custom } || (@resolutions.empty? && @options[:fact_type] == :custom)
      end

      def add(options = {}, &block)
        @location ||= options[:file] || block&.source_location
        define_resolution(nil, options, &block)
      end

      # Returns the resolution of a name, a new one where there is none; nil, with an error in the log, for one that is declared wrongly.
      def define_resolution(name, options = {}, &block)
        given = options.reject { |option, _| option == :type }
        given = { fact_type: :custom }.merge(given)
        @location ||= block&.source_location
        resolution = named(name, options[:type] || :simple)
        resolution.options(given)
        resolution.evaluate(&block) if block
        resolution
      rescue StandardError => e
        message = "Unable to add resolve #{name.inspect} for fact #{@name}: #{Bunraku.message_of(e)}"
        Bunraku.desk.log('failure', "#{message}#{Bunraku.place_of(e, @location)}", 'Facter')
        nil
      end

      def resolution(name)
        name && @resolutions.find { |each| each.name == name }
      end

      def flush
        @resolutions.each(&:flush)
        @value = nil
      end

      # Returns the value, that of the machine where it counts more or this fact has none; nil: there is none.
      def value
        return @value unless @value.nil?
        return if @resolutions.empty?
        raise "Caught recursion on #{@name}" if @searching

        @searching = true
        begin
          @value = Bunraku.desk.within('fact', @name.to_s, *@location) { with_core(resolved) }
        ensure
          @searching = false
        end
      end

      private

      def resolved
        return if Bunraku.desk.broken?(@name.to_s)

        by_weight(@resolutions.select(&:suitable?)).each do |resolution|
          value = resolution.value
          @used_resolution_weight = resolution.weight
          return value unless value.nil?
        end
        nil
      rescue Bunraku::FactFailed
        nil
      end

      def with_core(value)
        core = Bunraku.desk.core_value(@name.to_s) if value.nil? || @used_resolution_weight <= 0
        core = Bunraku.desk.fallback(@name.to_s) if core.nil? && value.nil?
        core.nil? ? value : core
      end

      # The heaviest first, external ones before others, else in the order of declaration.
      def by_weight(resolutions)
        resolutions.each_with_index.sort_by { |each, index| [-each.weight, each.fact_type == :external ? 0 : 1, index] }.map(&:first)
      end

      def named(name, type)
        there = resolution(name)
        if there
          return there if there.resolution_type == type

          raise ArgumentError, "Cannot return resolution #{name} with type #{type}; already defined as #{there.resolution_type}"
        end
        kind = { simple: Resolution, aggregate: Core::Aggregate }[type]
        raise ArgumentError, "Expected resolution type to be one of (:simple, :aggregate) but was #{type}" unless kind

        @resolutions << kind.new(name, self)
        @resolutions.last
      end
    end
  end
end
