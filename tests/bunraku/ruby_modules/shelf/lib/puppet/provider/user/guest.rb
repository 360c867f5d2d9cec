# Users that are lines of the file GUESTS: name, uid, comment, groups.
Puppet::Type.type(:user).provide :guest do
  has_features :manages_homedir
  mk_resource_methods

  def self.instances
    return [] unless File.exist?(ENV['GUESTS'])

    File.readlines(ENV['GUESTS'], chomp: true).map do |line|
      name, uid, comment, groups = line.split(':')
      new(name: name, ensure: :present, uid: uid.to_i, comment: comment, groups: groups.to_s)
    end
  end

  def self.prefetch(users)
    instances.each { |found| users[found.name].provider = found if users[found.name] }
  end

  def exists?
    @property_hash[:ensure] == :present
  end

  def create
    @property_hash = { name: @resource[:name], ensure: :present, uid: @resource[:uid], comment: @resource[:comment].to_s,
                       groups: [@resource[:groups]].flatten.join(',') }
    Puppet.notice("create, home #{@resource.managehome?.inspect} #{@resource[:managehome].inspect}")
  end

  def delete
    @property_hash = { name: @resource[:name], ensure: :absent }
  end

  def groups=(value)
    Puppet.notice("groups #{value.inspect}")
    @property_hash[:groups] = value
  end

  def flush
    others = self.class.instances.reject { |each| each.name == @property_hash[:name] }.map { |each| each.instance_variable_get(:@property_hash) }
    all = @property_hash[:ensure] == :absent ? others : others + [@property_hash]
    File.write(ENV['GUESTS'], all.sort_by { |each| each[:name] }.map { |each| each.values_at(:name, :uid, :comment, :groups).join(':') + "\n" }.join)
  end
end
