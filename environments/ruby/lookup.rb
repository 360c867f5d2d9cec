# frozen_string_literal: true

module Bunraku
  # The end of a back end's function that finds nothing; a module's Ruby must not rescue it either.
  class NotFound < Passing
    def initialize
      super(0)
    end
  end

  # The end of a call that is made before anybody has asked for it, and would need an answer of the compiler's.
  class Unasked < Passing
    def initialize
      super(0)
    end
  end

  # Refuses questions while a back end is called ahead.
  module Refusal
    def ask(what, *args, top: false)
      raise Unasked if desk.ahead

      super
    end
  end
  singleton_class.prepend(Refusal)

  # What a back end caches at a level and location of Hiera; `values` is nil when the compiler has them instead.
  BackendCache = Struct.new(:values)

  # The object through which a back end in Ruby uses the look-up that calls it. What it caches stays here, until it passes the object on:
  # functions of the language use it, too, so the compiler has the values from then on.
  class LookupContext < Opaque
    attr_reader :environment_name, :module_name

    def initialize(data)
      super(data['id'], 'Object', data['text'])
      @cache = Bunraku.desk.cache(data['cache'])
      @environment_name, @module_name = data['names']
      @same = Opaque.new(@id, @kind, @text) # for questions, which do not pass this object on
    end

    def passed_on
      values = @cache.values
      @cache.values = nil
      ask('cache_all', values) unless values.nil? || values.empty?
      self
    end

    def not_found
      raise NotFound
    end

    # Returns the value with its expressions replaced; one that has none is copied.
    def interpolate(value)
      catch(:asked) { return copy(value) }
      ask('interpolate', value)
    end

    # Nobody reads it, or the object would be an Opaque.
    def explain; end

    def cache(key, value)
      @cache.values ? @cache.values[key] = value : ask('cache', key, value)
    end

    def cache_all(values)
      return ask('cache_all', values) unless @cache.values

      @cache.values.update(values)
      nil
    end

    def cache_has_key(key)
      return ask('cache_has_key', key) unless @cache.values

      @cache.values.key?(key).tap { |found| note_use if found }
    end

    def cached_value(key)
      return ask('cached_value', key) unless @cache.values

      note_use if @cache.values.key?(key)
      @cache.values[key]
    end

    def cached_entries(&block)
      return ask('cached_entries', &block) unless @cache.values

      note_use
      return @cache.values.each_pair unless block

      @cache.values.each_pair(&block)
      nil
    end

    def cached_file_data(path, &block)
      return ask('cached_file_data', path) unless block

      Bunraku.desk.file_data(path, ->(known) { Bunraku.ask('file_text', @same, path, known) }, &block)
    end

    private

    # The result is one of an earlier call, too.
    def note_use
      Bunraku.desk.note_read('cache', '', true)
    end

    def ask(method, *args, &block)
      Bunraku.ask('method', @same, method, args, block)
    end

    def copy(value)
      case value
      when String then text?(value) && !value.include?('%{') ? value : throw(:asked)
      when Array then value.map { |each| copy(each) }
      when Hash then value.to_h { |key, each| [copy(key), copy(each)] }
      when Integer, Float, nil, true, false then value
      else throw :asked
      end
    end

    def text?(value)
      value.encoding == Encoding::UTF_8 && value.valid_encoding?
    end
  end
end
