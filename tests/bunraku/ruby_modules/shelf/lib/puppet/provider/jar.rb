require 'yaml'

# What all providers of jars have.
class Puppet::Provider::Jar < Puppet::Provider
  def path
    File.join(@resource[:shelf], @resource[:name])
  end

  def data
    File.exist?(path) ? YAML.safe_load(File.read(path)) : {}
  end

  def save(more)
    File.write(path, data.merge(more).to_yaml)
  end
end
