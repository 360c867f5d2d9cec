# Changes what it is given, which nobody else may see.
Puppet::Functions.create_function(:'m::changes') do
  def changes(data)
    return data.map { |each| changed(each) } if data.is_a?(Array)
    changed(data)
  end

  def changed(data)
    raise Puppet::Error, "#{data.inspect} is no hash" unless data.is_a?(Hash)
    data.delete('name')
    data['added'] = data.keys.sort.join(',')
    data['added'] += '!'
    data.each { |key, value| value.reject! { |x| x == '' } if value.is_a?(Array) }
    data
  end
end
