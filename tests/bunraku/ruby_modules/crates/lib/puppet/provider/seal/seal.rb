# frozen_string_literal: true

require_relative '../../../puppet_x/crates/depot'

# Seals.
class Puppet::Provider::Seal::Seal
  def get(_context)
    []
  end

  def set(context, changes)
    changes.each_key do |name|
      context.updating(name) do
        context.notice('the fact has no value') if name == 'fact' && Facter.fact(:crates_unknown).value.nil?
        PuppetX::Depot.new('seals').put(name, changes[name][:should][:wax])
      end
    end
  end

  def insync?(_context, name, _attribute, _is, should)
    PuppetX::Depot.new('seals').things[name] == should[:wax]
  end
end
