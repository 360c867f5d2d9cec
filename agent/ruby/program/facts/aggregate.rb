# frozen_string_literal: true

require 'tsort'

module Facter
  module Core
    # A fact of several chunks, each of which may need others, and of a block that makes one value of them.
    class Aggregate
      include Bunraku::FactResolution
      include TSort

      class DependencyError < StandardError; end

      def initialize(name, fact)
        super
        @chunks = {}
        @needs = {}
      end

      def resolution_type
        :aggregate
      end

      # Runs the block that describes this resolution.
      def evaluate(&block)
        instance_eval(&block)
      end

      def chunk(name, options = {}, &block)
        raise ArgumentError, 'Facter::Core::Aggregate#chunk requires a block' unless block
        raise ArgumentError, 'Facter::Core::Aggregate#expected chunk name to be a Symbol' unless name.is_a?(Symbol)

        unknown = options.keys - [:require]
        raise ArgumentError, "Unexpected options passed to Facter::Core::Aggregate#chunk: #{unknown.inspect}" unless unknown.empty?

        @needs[name] = Array(options[:require])
        @chunks[name] = block
        self
      end

      def aggregate(&block)
        raise ArgumentError, 'Facter::Core::Aggregate#aggregate requires a block' unless block

        @aggregate = block
        self
      end

      def tsort_each_node(&block)
        @needs.each_key(&block)
      end

      def tsort_each_child(name, &block)
        @needs.fetch(name, []).each(&block)
      end

      private

      def accepted
        %i[name timeout weight fact_type]
      end

      def kind_in_errors
        'aggregate'
      end

      def resolve_value
        results = {}
        ordered.each { |name| results[name] = Bunraku::FactValues.frozen(@chunks[name].call(*@needs[name].map { |each| results[each] })) }
        @aggregate ? @aggregate.call(results) : merged(results.values)
      end

      def ordered
        cycles = strongly_connected_components.select { |names| names.size > 1 }
        raise DependencyError, "Could not order chunks; found the following dependency cycles: #{cycles.inspect}" unless cycles.empty?

        missing = @needs.values.flatten.uniq - @needs.keys
        raise DependencyError, "Cannot sort elements; cannot depend on missing elements #{missing}" unless missing.empty?

        tsort
      end

      def merged(values)
        values.inject { |result, each| Bunraku::FactValues.merged(result, each) }
      rescue Bunraku::FactValues::Unmergeable => e
        raise ArgumentError, "Could not deep merge all chunks (Original error: #{e.message}), " \
                             'ensure that chunks return either an Array or Hash or override the aggregate block'
      end
    end
  end
end
