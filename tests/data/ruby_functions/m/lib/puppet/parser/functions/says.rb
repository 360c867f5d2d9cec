Puppet::Parser::Functions.newfunction(:says, type: :statement, arity: 1) do |args|
  fail "a number: #{args[0]}" if args[0].is_a?(Integer)
  function_notice([args[0]])
end
