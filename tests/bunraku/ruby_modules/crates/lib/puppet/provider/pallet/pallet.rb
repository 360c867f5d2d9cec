# frozen_string_literal: true

require_relative '../../../puppet_x/crates/depot'

# Pallets, with a `set` of its own.
class Puppet::Provider::Pallet::Pallet
  def initialize
    @depot = PuppetX::Depot.new('pallets')
  end

  def get(_context, names = nil)
    names = nil if names == []
    found = @depot.things.map do |title, values|
      hall, place = title.split('/')
      { title: title, hall: hall, place: place, ensure: 'present', load: values['load'], height: values['height'] }
    end
    names ? found.select { |each| names.include?(hall: each[:hall], place: each[:place]) } : found
  end

  def set(context, changes, noop: false)
    changes.each do |name, change|
      title = name.values_at(:hall, :place).join('/')
      context.notice("noop is #{noop}")
      if change[:should][:ensure] == 'absent'
        context.deleting(title) { @depot.delete(title) }
      else
        context.processing(title, change[:is][:ensure], change[:should][:ensure], message: 'Loading') { store(context, title, change[:should]) }
      end
    end
  end

  private

  def store(context, title, should)
    context.debug('storing')
    context.failed(title, message: 'it is too high') if should[:height] > 100
    raise 'the hall is full' if should[:height] > 100

    @depot.put(title, 'load' => should[:load], 'height' => should[:height])
    context.processed(title, 'empty', should[:mode])
  end
end
