require 'puppet/parameter/boolean'

Puppet::Type.newtype(:jar) do
  @doc = 'A jar on a shelf: a file with pairs.'

  feature :labels, 'It has labels.', methods: [:label]
  feature :lids, 'It can be closed.'

  ensurable do
    desc 'Whether it is there.'
    newvalue(:present, event: :jar_made) { provider.create }
    newvalue(:absent) { provider.destroy }
    newvalue(:sealed) { provider.seal }
    aliasvalue(:closed, :sealed)
    defaultto :present
  end

  def self.title_patterns
    [[/\A(.+):([^:]+)\z/m, [[:shelf], [:name]]], [/\A([^:]+)\z/m, [[:name]]]]
  end

  newparam(:name, namevar: true)
  newparam(:shelf) do
    isnamevar
    defaultto { Facter.value(:kernel) == 'Linux' ? '/nonexistent' : nil }
    validate { |value| raise ArgumentError, "a shelf is an absolute path, not #{value}" unless value.start_with?('/') }
  end
  newparam(:strict, boolean: true, parent: Puppet::Parameter::Boolean) { defaultto false }
  newparam(:tool, required_features: :lids)

  newproperty(:content) do
    munge { |value| value.to_s.strip }
    unmunge { |value| value.upcase }
    def insync?(is)
      is.to_s.casecmp?(should.to_s)
    end

    def is_to_s(value)
      "<#{value}>"
    end

    def should_to_s(value)
      "<#{value}>"
    end
  end
  newproperty(:colour) do
    newvalues(:red, :green, /\Acustom-\w+\z/)
    aliasvalue(:scarlet, :red)
  end
  newproperty(:parts, array_matching: :all) do
    def insync?(is)
      is.is_a?(Array) && is.sort == should.sort
    end

    def change_to_s(current, desired)
      "parts went from #{current.inspect} to #{desired.inspect}"
    end
  end
  newproperty(:label, required_features: :labels)

  autorequire(:file) { self[:shelf] }
  autobefore(:notify) { 'last' if self[:strict] }

  validate do
    raise Puppet::Error, "#{self[:name]} cannot have both" if self[:colour] == :green && self[:label]
  end
end
