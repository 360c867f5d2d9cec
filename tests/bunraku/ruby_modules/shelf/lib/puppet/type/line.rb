Puppet::Type.newtype(:line) do
  ensurable
  newparam(:name, namevar: true)
  newproperty(:value)
  newproperty(:target) { defaultto { @resource.class.defaultprovider.default_target } }
end
