# Has only what is needed, and a parent of its own.
require File.expand_path(File.join(File.dirname(__FILE__), 'crate'))

Puppet::Type.type(:package).provide :purgeable, parent: :crate, source: :crate do
  has_feature :versionable

  def purge
    uninstall
  end

  def insync?(is)
    @resource[:ensure] == '>1' && is.to_f > 1
  end

  def self.instances
    raise Puppet::Error, 'no listing' if ENV['CRATES'].nil?

    []
  end
end
