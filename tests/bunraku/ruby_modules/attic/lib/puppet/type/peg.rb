Puppet::Type.newtype(:peg) do
  @doc = 'A peg, which a manifest cannot remove; a purge can.'

  ensurable
  newparam(:name, namevar: true)
  validate { raise Puppet::Error, "#{self[:name]} stays" if self[:ensure] == :absent }
end
