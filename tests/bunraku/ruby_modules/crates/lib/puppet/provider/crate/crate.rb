# frozen_string_literal: true

require 'puppet/resource_api/simple_provider'
require_relative '../../../puppet_x/crates/depot'

# Crates, one at a time.
class Puppet::Provider::Crate::Crate < Puppet::ResourceApi::SimpleProvider
  def initialize
    super
    @depot = PuppetX::Depot.new('crates')
  end

  def get(_context)
    File.write("#{ENV.fetch('CRATES')}.gets", 'x', mode: 'a')
    @depot.things.map do |name, values|
      state = { name: name, ensure: 'present' }
      values.each { |key, value| state[key.to_sym] = value }
      state[:content] = secret(state[:content]) if state[:content]
      state[:keys] = state[:keys].map { |each| secret(each) } if state[:keys]
      state
    end
  end

  def canonicalize(_context, resources)
    resources.each { |each| each[:colour] = each[:colour].downcase if each[:colour].is_a?(String) }
  end

  def create(context, name, should)
    context.info('building')
    raise 'there is no wood' if should[:fails]

    context.warning(%w[a b], 'two at once')
    store(name, should)
    context.created(name)
  end

  def update(context, name, should)
    raise ArgumentError, 'it is nailed down' if should[:fails]

    store(name, should)
    context.attribute_changed(name, :size, nil, should[:size], message: 'planed')
    context.updated([name])
  end

  def delete(context, name)
    @depot.delete(name)
    context.deleted(name, message: 'Burnt')
  end

  private

  def secret(value)
    Puppet::Pops::Types::PSensitiveType::Sensitive.new(value)
  end

  def store(name, should)
    values = should.reject { |key, value| value.nil? || %i[name ensure fails shelf below].include?(key) }
    values[:content] = values[:content].unwrap if values[:content]
    values[:keys] = values[:keys].map(&:unwrap) if values[:keys]
    @depot.put(name, values.transform_keys(&:to_s))
  end
end
