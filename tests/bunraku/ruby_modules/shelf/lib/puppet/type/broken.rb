Puppet::Type.newtype(:broken) do
  newparam(:name, namevar: true)
  nonsense :here
end
