# frozen_string_literal: true

# Returns what it should not.
class Puppet::Provider::Sloppy::Sloppy
  def get(_context)
    [{ name: 'a', ensure: :present, size: 'big', secret: 5, more: true }, { name: 'b', ensure: 'present', size: -3 }, { name: 'c', ensure: 'present', size: 1 }]
  end

  def canonicalize(_context, resources)
    resources.each { |each| each[:size] = each[:size].abs if each[:size].is_a?(Integer) }
  end

  def set(context, changes)
    changes.each { |name, change| context.notice(name, "would get #{change[:should].inspect}") }
  end
end
