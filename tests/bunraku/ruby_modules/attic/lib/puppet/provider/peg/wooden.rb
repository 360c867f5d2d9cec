Puppet::Type.type(:peg).provide(:wooden) do
  mk_resource_methods

  def self.instances
    %w[first second].map { |name| new(name: name, ensure: :present) }
  end

  def exists?
    @property_hash[:ensure] == :present
  end

  def create
    @property_hash[:ensure] = :present
  end

  def destroy
    @property_hash.clear
  end
end
