# frozen_string_literal: true

module Bunraku
  # All facts that are declared, and the files that declare them.
  class FactCollection
    EXTERNAL_WEIGHT = 10_000
    ENVIRONMENT_WEIGHT = 1_000_000

    attr_reader :folders

    # @param folders [Array<String>] the folders of files with facts
    # @param skipped [Array<String>] files that are not read
    def initialize(folders, skipped)
      @folders = folders
      @skipped = skipped
      @loaded = []
      @facts = {}
    end

    # Adds facts that are known already: those of facts.d folders and of the environment.
    def add_known(values, weight)
      values.each { |name, value| add(name, value: value, fact_type: :external, weight: weight) }
    end

    def add(name, options = {}, &block)
      fact = fact_for(name, options)
      fact.add(options, &block)
      fact
    end

    def define(name, options = {}, &block)
      fact = fact_for(name, options)
      fact.instance_eval(&block) if block
      fact
    rescue StandardError => e
      Bunraku.desk.log('failure', "Unable to add fact #{name}: #{e.message}#{Bunraku.place_of(e, block&.source_location)}", 'Facter')
      nil
    end

    def [](name)
      @facts[canonical(name)]
    end

    # Returns the facts that a dotted name means, or is inside of: those of the longest beginning that there is.
    def matching(query)
      words = query.split('.')
      words.length.downto(1) do |length|
        found = self[words.first(length).join('.')]
        return [found, words.drop(length)] if found
      end
      nil
    end

    def custom
      @facts.values.select(&:custom?)
    end

    def names
      @facts.keys.map(&:to_s)
    end

    def flush
      @facts.each_value(&:flush)
    end

    # Forgets all facts; files that were read are not read again.
    def clear
      @facts.clear
    end

    # Reads the files that are named like a fact.
    def load(name)
      @folders.each { |folder| load_file(File.join(folder, "#{name.downcase}.rb")) }
    end

    def load_all
      @folders.each { |folder| Dir.glob(File.join(folder, '*.rb')).sort.each { |file| load_file(file) } }
    end

    private

    def canonical(name)
      name.to_s.downcase.to_sym
    end

    def fact_for(name, options)
      @facts[canonical(name)] ||= Facter::Util::Fact.new(canonical(name), options)
    end

    def load_file(file)
      return if @loaded.include?(file) || @skipped.include?(file) || !File.file?(file)

      @loaded << file
      Bunraku.desk.within('file', file, file) { Kernel.load(file) }
    rescue ScriptError => e
      @loaded.delete(file)
      report("Error loading fact #{file}: #{e.message}", e, file)
    rescue NoMemoryError
      Bunraku.ask('out_of_memory')
    rescue Exception => e # rubocop:disable Lint/RescueException -- a file that calls exit costs only what comes after that
      report("error while resolving custom facts in #{file} #{Bunraku.message_of(e)}", e, file)
    end

    def report(message, error, file)
      line = Bunraku.place_of(error, nil)[/\A \(file: #{Regexp.escape(file)}, (line: \d+)/, 1]
      Bunraku.desk.log('failure', line ? "#{message} (#{line})" : message, 'Facter')
    end
  end
end
