require 'puppet_x/shelf/store'

Puppet::Type.type(:heap).provide(:counted) do
  mk_resource_methods

  def self.instances
    PuppetX::Shelf.all.map { |name, values| new({ name: name, ensure: :present }.merge(values)) }
  end

  def self.prefetch(resources)
    Puppet.notice("prefetched #{resources.keys.sort.join(' ')}")
    instances.each { |found| resources[found.name].provider = found if resources[found.name] }
  end

  def exists?
    @property_hash[:ensure] == :present
  end

  def create
    @property_hash = { name: @resource[:name], ensure: :present, size: @resource[:size], colour: @resource[:colour] }
  end

  def destroy
    @property_hash[:ensure] = :absent
  end

  def shake
    Puppet.notice("#{@resource.ref} was shaken")
  end

  def flush
    return PuppetX::Shelf.remove(@resource[:name]) if @property_hash[:ensure] == :absent

    PuppetX::Shelf.put(@resource[:name], size: @property_hash[:size], colour: @property_hash[:colour])
  end
end
