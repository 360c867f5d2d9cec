Puppet::Type.newtype(:ledger) do
  ensurable
  newparam(:name, namevar: true)
  newparam(:file)
  newproperty(:value)
end
