require 'set'

# Loops, jumps out of them, and helpers with optional arguments.
Puppet::Functions.create_function(:'m::loops') do
  dispatch :loops do
    param 'Array[String]', :names
    optional_param 'Hash', :limits
    return_type 'Any'
  end

  dispatch :single do
    param 'String', :name
    repeated_param 'Any', :others
  end

  def loops(names, limits = {})
    return nil if names.empty?
    found = {}
    names.each_with_index do |name, index|
      next if name == ''
      return "bad #{name}" if forbidden?(name, limits)
      key, value = name.split(':')
      found[key] ||= []
      found[key] << (value || index)
    end
    rest = names.dup
    count = 0
    until rest.empty?
      first = rest.shift
      break if first == 'stop'
      count += first.length
    end
    while count > 100
      count -= 7
    end
    found['count'] = count
    found
  end

  def forbidden?(name, limits, default = 12)
    most = limits['most'] ? Integer(limits['most']) : default
    raise ArgumentError, "the limit #{most} is negative" if most < 0
    name.length > most
  end

  def single(name, *others)
    [name.class == String, name.reverse, others.size, others.map { |x| x.to_s }]
  end
end
