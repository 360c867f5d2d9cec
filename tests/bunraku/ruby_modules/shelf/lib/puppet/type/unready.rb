Puppet::Type.newtype(:unready) do
  ensurable
  newparam(:name, namevar: true)
end
