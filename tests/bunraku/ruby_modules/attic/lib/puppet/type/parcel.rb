require 'puppet/util/diff'

Puppet::Type.newtype(:parcel) do
  newparam(:name, namevar: true)
  newparam(:old)
  newparam(:new)
  newparam(:tries) { munge { |value| value.to_i } }

  newproperty(:way) do
    include Puppet::Util::Diff
    newvalues(:absent, :default, /.+/)

    def insync?(current)
      Puppet.notice(diff(resource[:old], resource[:new]).lines.last.to_s.chomp) if resource[:old]
      current == should
    end
  end
end
