# Attributes with names that the agent has for parts of a resource, defaults that are false, values listed twice.
Puppet::Type.newtype(:badge) do
  ensurable
  newparam(:name, namevar: true)
  newparam(:folder)
  newparam(:id)
  newparam(:file)
  newparam(:line)
  newparam(:purging)
  newparam(:worn) { defaultto false }
  newproperty(:size) { newvalues(:small, %r{\A\d+/\d+\z}) }
  newproperty(:clip, array_matching: :all)
  newproperty(:edge, parent: attrclass(:clip))
  newproperty(:metal) { newvalue(:gold, required_features: :precious) }

  feature :precious, 'It may be of gold.'
  autorequire(:notify) { 'first' }
  autorequire(:notify) { 'second' }

  def self.newer?
    true
  end
end
