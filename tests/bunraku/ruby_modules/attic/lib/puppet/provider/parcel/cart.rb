require_relative '../../../puppet_x/attic/carrier'

Puppet::Type.type(:parcel).provide(:cart, parent: PuppetX::Attic::Carrier) do
  confine true: true

  def way
    :absent
  end

  def way=(_value)
    carry(resource[:tries])
  end
end
