Puppet::Type.newtype(:heap) do
  ensurable
  newparam(:name, namevar: true)
  newparam(:folder) { defaultto '/tmp' }
  newproperty(:size) { munge { |value| Integer(value) } }
  newproperty(:colour)

  def refresh
    provider.shake
  end

  def generate
    return [] unless self[:name].start_with?('many')

    %w[one two].map { |n| self.class.new(name: "#{self[:name].sub('many', '')}-#{n}", folder: self[:folder], size: 3, ensure: :present) }
  end

  def eval_generate
    return [] unless self[:name] == 'dirs'

    [Puppet::Type.type(:file).new(path: "#{self[:folder]}/generated", ensure: :directory, mode: '0750')]
  end
end
