# frozen_string_literal: true

module Bunraku
  # What objects held at one moment, to be put back.
  class Snapshot
    def initialize(objects)
      @values = objects.map { |object| [object, object.instance_variables.map { |name| [name, copied(object.instance_variable_get(name))] }.to_h] }
    end

    def restore
      @values.each do |object, values|
        (object.instance_variables - values.keys).each { |name| object.remove_instance_variable(name) }
        values.each { |name, value| object.instance_variable_set(name, value) }
      end
    end

    private

    def copied(value)
      value.instance_of?(Hash) || value.instance_of?(Array) ? value.dup : value
    end
  end
end
