module Puppet::Parser::Functions
  newfunction(:old, :type => :rvalue, :arity => -2, :doc => <<-EOS
Reads variables, as functions of the old API do.
EOS
  ) do |args|
    raise(Puppet::ParseError, "old(): #{args.size} arguments") if args.size > 3

    value = lookupvar('interfaces')
    return [value, args[0]] if args[0].is_a?(Numeric)

    case args[0]
    when :undef, '', nil then 'nothing'
    when Array
      args[0].sort_by { |x| x.to_s }.each_with_object([]) { |x, all| all << x.to_s.upcase }
    when %r{^ip} then self.lookupvar("#{args[0]}_eth0")
    when Hash
      { :first => args[0].first, 'last' => args[0].values.last, 'call' => function_join([['x', 'y'], args[1].to_s]) }
    else
      args[0].to_s.strip
    end
  end
end
