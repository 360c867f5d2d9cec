# frozen_string_literal: true

require 'resolv'
require 'timeout'

# No host has an address, so that answers depend neither on the network nor on its haste.
class Resolv
  def self.each_address(_name); end

  def self.getaddresses(_name)
    []
  end

  def self.getaddress(name)
    raise ResolvError, "no address for #{name}"
  end
end

# Questions that Puppet's own Ruby and the agent's are asked in the same words.
module Probe
  LIMIT = 20 # seconds for one answer

  module_function

  # Returns data as JSON can have it.
  def plain(data)
    case data
    when Hash then data.map { |key, value| [plain(key), plain(value)] }.to_h
    when Array then data.map { |each| plain(each) }
    when String then data.dup.force_encoding(Encoding::UTF_8).scrub('?')
    when Symbol, Proc, Regexp then shown(data)
    else data
    end
  end

  # Returns a value as text that tells symbols from strings; without addresses and moments.
  def shown(value)
    case value
    when Array then "[#{value.map { |each| shown(each) }.join(', ')}]"
    when Hash then "{#{value.map { |key, each| "#{shown(key)} => #{shown(each)}" }.join(', ')}}"
    when Proc then 'a block'
    else value.inspect
    end.gsub(/0x\h{8,}/, '0x')
  end

  # Returns what a block returns, or the error that it raises.
  def attempt
    Timeout.timeout(LIMIT) { shown(yield) }
  rescue Timeout::Error
    'took too long'
  rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it is the answer
    "#{e.class}: #{e}".sub(/\n\n.*/m, '').sub(/\nDid you mean.*/m, '').gsub(/0x\h{8,}/, '0x') # without a line of source and suggestions
  end

  # One type.
  class Types
    def initialize(name, questions, catalog)
      @name = name
      @values = questions['values']
      @titles = questions['titles']
      @base = questions['base'].fetch(name, {})
      @catalog = catalog
    end

    def answer
      type = nil
      failure = Probe.attempt { type = Puppet::Type.type(@name) && nil }
      type = Puppet::Type.type(@name) if failure == 'nil'
      return { 'failure' => failure } if type.nil?

      { 'declaration' => declaration(type), 'providers' => providers(type), 'titles' => titles(type) }.merge(all_values(type))
    end

    private

    # --- declarations

    def declaration(type)
      { 'attributes' => Probe.attempt { type.allattrs - type.metaparams }, 'properties' => Probe.attempt { type.validproperties },
        'parameters' => Probe.attempt { type.parameters }, 'namevars' => Probe.attempt { type.key_attributes },
        'isomorphic' => Probe.attempt { type.isomorphic? }, 'self_refresh' => Probe.attempt { type.self_refresh ? true : false },
        'features' => Probe.attempt { type.features }, 'doc' => Probe.attempt { words(type.doc) },
        'refreshable' => Probe.attempt { type.method_defined?(:refresh) }, 'questions' => Probe.attempt { type.public_instance_methods(false).grep(/\?\z/).sort },
        'each' => own(type).map { |name| [name.to_s, attribute(type.attrclass(name))] }.to_h }
    end

    def own(type)
      (type.allattrs - type.metaparams - [:provider]).select { |name| type.attrclass(name) }
    end

    def words(text)
      text.to_s.split.join(' ')
    end

    def attribute(declared)
      values = declared.value_collection
      { 'property' => declared <= Puppet::Property ? true : false, 'namevar' => Probe.attempt { declared.isnamevar? ? true : false },
        'required' => Probe.attempt { declared.required? ? true : false },
        'features' => Probe.attempt { declared.required_features || [] }, 'matching' => Probe.attempt { declared.respond_to?(:array_matching) && declared <= Puppet::Property ? declared.array_matching : nil },
        'values' => Probe.attempt { values.values }, 'patterns' => Probe.attempt { values.regexes },
        'aliases' => Probe.attempt { values.values.map { |value| values.value(value).aliases } },
        'doc' => Probe.attempt { words(declared.instance_variable_get(:@doc)) },
        'name' => Probe.attempt { declared.name }, 'class' => Probe.attempt { declared.to_s } }
    end

    def providers(type)
      names = Probe.attempt { type.providers.sort }
      found = Probe.attempt { type.defaultprovider&.name }
      each = type.providers.sort.map { |name| [name.to_s, provider(type.provider(name))] }.to_h
      { 'names' => names, 'default' => found, 'each' => each, 'suitable' => Probe.attempt { type.suitableprovider.map(&:name).sort } }
    rescue StandardError, ScriptError => e
      { 'failure' => "#{e.class}: #{e}" }
    end

    def provider(declared)
      { 'doc' => Probe.attempt { words(declared.instance_variable_get(:@doc)) }, 'suitable' => Probe.attempt { declared.suitable? },
        'features' => Probe.attempt { declared.features.sort }, 'default' => Probe.attempt { declared.default? ? true : false },
        'specificity' => Probe.attempt { declared.specificity }, 'prefetch' => Probe.attempt { declared.respond_to?(:prefetch) },
        'lists' => Probe.attempt { declared.method(:instances).owner == Puppet::Provider.singleton_class }, 'class' => Probe.attempt { declared.to_s },
        'parent' => Probe.attempt { declared.superclass.to_s },
        'commands' => Probe.attempt { declared.instance_variable_get(:@commands).keys.sort } }
    end

    # --- resources

    def made(type, values)
      type.new({ catalog: @catalog }.merge(values))
    end

    def contents(resource)
      resource.parameters.reject { |name, _| name == :loglevel }.map { |name, each| [name, each.is_a?(Puppet::Property) ? each.should : each.value] }
              .sort_by { |name, _| name.to_s }.to_h
    end

    def titles(type)
      @titles.map { |title| [title, Probe.attempt { contents(made(type, title: title)) }] }.to_h
    end

    # Returns the first title with which there is a resource.
    def fitting_title(type, base)
      unchecked(type) { @titles.find { |title| Probe.attempt { made(type, base.merge(title: title)) && :made } == ':made' } } || @titles.first
    end

    def all_values(type)
      base = @base.map { |name, value| [name.to_sym, value] }.to_h
      title = fitting_title(type, base)
      { 'title' => title, 'values' => with_values(type, title, base), 'unchecked' => check?(type) ? unchecked(type) { with_values(type, title, base) } : {},
        'compared' => unchecked(type) { compared(type, title, base) }, 'relations' => unchecked(type) { relations(type, title, base) } }
    end

    # Without the check of whole resources, which hides what became of a value.
    def unchecked(type)
      return yield unless check?(type)

      check = type.instance_method(:validate)
      type.send(:define_method, :validate) { nil }
      begin
        yield
      ensure
        type.send(:define_method, :validate, check)
      end
    end

    # Whether a type checks whole resources.
    def check?(type)
      type.method_defined?(:validate, false)
    end

    def values_for(declared)
      listed = declared.value_collection.values
      @values + listed.flat_map { |value| [value.to_s, value.to_s.upcase, [value.to_s]] }
    end

    def with_values(type, title, base)
      own(type).map do |name|
        [name, values_for(type.attrclass(name)).map do |value|
          [Probe.shown(value), Probe.attempt { contents(made(type, base.merge(title: title, name => copied(value)))) }]
        end.to_h]
      end.to_h
    end

    def copied(value)
      Marshal.load(Marshal.dump(value))
    end

    CURRENT = [:absent, nil, '', 'a', '1', 1, true, :true, [], ['a'], %w[a b], { 'a' => 'b' }, [{ 'a' => 1 }]].freeze # rubocop:disable Lint/BooleanSymbol

    # What properties say and whether they are in sync, with other values than they shall have.
    def compared(type, title, base)
      type.validproperties.map do |name|
        answers = values_for(type.attrclass(name)).map do |value|
          property = nil
          failure = Probe.attempt { (property = made(type, base.merge(title: title, name => copied(value))).property(name)) && nil }
          [Probe.shown(value), failure == 'nil' && property ? with_current(property) : 'none']
        end
        [name, answers.to_h]
      end.to_h
    end

    def with_current(property)
      (CURRENT + [property.should]).map do |current|
        [Probe.shown(current), [Probe.attempt { property.safe_insync?(copied(current)) ? true : false }, Probe.attempt { property.is_to_s(copied(current)) },
                                Probe.attempt { property.should_to_s(property.should) }, Probe.attempt { property.change_to_s(copied(current), property.should) }]]
      end.to_h
    end

    KINDS = %i[require before subscribe notify].freeze

    # What the blocks of automatic relationships name.
    def relations(type, title, base)
      Probe.attempt do
        resource = made(type, base.merge(title: title))
        KINDS.map { |kind| [kind, related(resource, kind)] }.to_h
      end
    end

    def related(resource, kind)
      found = []
      resource.class.public_send(:"eachauto#{kind}") do |target, block|
        target = resource.instance_eval(&target) if target.is_a?(Proc)
        [resource.instance_eval(&block)].flatten.compact.each { |each| found << "#{target} #{each}" }
      end
      found
    end
  end
end
