# frozen_string_literal: true

require 'json'
require File.expand_path('../../../probe/types', __dir__)

Puppet::Type.type(:type_probe).provide(:ruby) do
  desc 'Asks the same questions of whichever program has loaded it.'

  def exists?
    false
  end

  def create
    questions = JSON.parse(File.read(resource[:questions]))
    File.open(resource[:answers], 'w') do |file|
      questions['types'].each do |name|
        answer = Probe::Types.new(name, questions, resource.catalog).answer
        file.puts(JSON.generate(Probe.plain({ 'type' => name }.merge(answer))))
        file.flush
      end
    end
  end

  def destroy; end
end
