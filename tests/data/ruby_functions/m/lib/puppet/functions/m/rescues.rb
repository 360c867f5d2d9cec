Puppet::Functions.create_function(:'m::rescues') do
  def rescues(*args)
    require 'ipaddr'
    problems = [ArgumentError, NoMethodError]
    result = args.map do |arg|
      value = 'none'
      begin
        raise Puppet::ParseError, 'empty' if arg == ''
        value = IPAddr.new(arg).ipv6? ? 6 : 4
        Puppet.debug("#{arg} is an address of version #{value}")
      rescue Puppet::Error, TypeError
        value = 'error of Puppet'
      rescue *problems
        value = 'no address'
      end
      value
    end
    called = begin
      call_function('fail', 'not today') if args.first == 'fail'
      call_function('join', ['a', 'b'], '-')
    rescue Puppet::ParseError
      'it failed'
    end
    call_function('notice', *args)
    result + [called, closure_scope['interfaces'], args[1].nil? ? 'one' : args[1].upcase]
  end
end
