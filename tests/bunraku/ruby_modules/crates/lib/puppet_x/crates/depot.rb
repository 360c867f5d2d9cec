# frozen_string_literal: true

require 'yaml'

module PuppetX; end

# Things of one kind, in a file of YAML that the variable CRATES names.
class PuppetX::Depot
  def initialize(kind)
    @kind = kind
  end

  def all
    file = ENV.fetch('CRATES')
    found = File.exist?(file) ? YAML.safe_load(File.read(file)) : {}
    (found || {})
  end

  def things
    all.fetch(@kind, {})
  end

  def put(name, values)
    write(things.merge(name => values))
  end

  def delete(name)
    write(things.reject { |each, _| each == name })
  end

  private

  def write(things)
    File.write(ENV.fetch('CRATES'), YAML.dump(all.merge(@kind => things.sort.to_h)))
  end
end
