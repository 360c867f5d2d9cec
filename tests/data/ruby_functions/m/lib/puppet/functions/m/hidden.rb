# Has methods that only it may call, and serves a Ruby that nobody has any more.
Puppet::Functions.create_function(:'m::hidden') do
  dispatch :hidden do
    param 'Any', :value
    return_type 'Any'
  end

  private

  def hidden(value, depth = 1)
    return [name_of('nothing')] if value.nil? || value == false || starts?(value, /false/i)

    lines = []
    if value.is_a?(Hash)
      value.map do |key, inner|
        lines << spaced("<#{name_of(key)}>", depth)
        lines << hidden(inner, depth + 1)
      end
    else
      lines << spaced(value.to_s, depth)
    end
    lines.flatten
  end

  def starts?(value, pattern)
    if Gem::Version.new(RUBY_VERSION) < Gem::Version.new('2.4.0')
      value =~ pattern
    else
      value.is_a?(String) && value.match?(pattern)
    end
  end

  def name_of(text)
    text.to_s.split('_').map(&:capitalize).join
  end

  def spaced(text, count)
    ('  ' * count) + text
  end
end
