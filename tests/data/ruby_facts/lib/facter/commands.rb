# Commands, in all the ways in which facts run them.

Facter.add(:c_string) { setcode 'printf " padded \n"' }
Facter.add(:c_pipe) { setcode 'printf "a\nb\nc\n" | wc -l' }
Facter.add(:c_empty) { setcode 'printf ""' }
Facter.add(:c_missing) { setcode 'no-such-program-at-all --version' }
Facter.add(:c_failing) { setcode 'sh -c "echo printed; exit 3"' }
Facter.add(:c_stderr) { setcode 'sh -c "echo wrong >&2; echo right"' }
Facter.add(:c_locale) { setcode 'printenv LC_ALL LANG' }
Facter.add(:c_exec) { setcode { Facter::Core::Execution.exec('echo by exec') } }
Facter.add(:c_exec_missing) { setcode { Facter::Core::Execution.exec('no-such-program-at-all').inspect } }
Facter.add(:c_old_exec) { setcode { Facter::Util::Resolution.exec('echo of old') } }
Facter.add(:c_old_which) { setcode { [Facter::Util::Resolution.which('sh').nil?, Facter::Util::Resolution.which('no-such-program-at-all').nil?] } }
Facter.add(:c_which) { setcode { [Facter::Core::Execution.which('/bin/sh'), Facter::Core::Execution.which('/etc/passwd')].map(&:inspect) } }
Facter.add(:c_execute) { setcode { Facter::Core::Execution.execute('echo whole; false') + $?.exitstatus.to_s } }
Facter.add(:c_on_fail) { setcode { Facter::Core::Execution.execute('no-such-program-at-all', on_fail: :instead) } }
Facter.add(:c_on_fail_raise) do
  setcode do
    Facter::Core::Execution.execute('no-such-program-at-all -x')
  rescue Facter::Core::Execution::ExecutionFailure => e
    e.message
  end
end
Facter.add(:c_unrescued) { setcode { Facter::Core::Execution.execute('no-such-program-at-all -x') } }
Facter.add(:c_timeout) do
  setcode do
    Facter::Core::Execution.execute('sleep 20', timeout: 1)
  rescue Facter::Core::Execution::ExecutionFailure => e
    e.message.sub(/\d+\z/, 'N')
  end
end
Facter.add(:c_timeout_on_fail) { setcode { Facter::Core::Execution.execute('sleep 20', timeout: 1, on_fail: 'late').inspect } }
Facter.add(:c_unknown_option) { setcode { Facter::Core::Execution.execute('echo on', nonsense: 1) } }
Facter.add(:c_quoted) { setcode { Facter::Core::Execution.execute('"sh" -c "echo quoted"') } }
Facter.add(:c_expanded) { setcode { Facter::Core::Execution.expand_command("'/bin/sh' -c x").inspect } }
Facter.add(:c_stdin) { setcode { Facter::Core::Execution.execute('echo ok < /dev/null') } }
Facter.add(:c_with_env) do
  setcode do
    ENV['C_FACT_KEPT'] = 'before'
    inside = Facter::Core::Execution.with_env('C_FACT_KEPT' => 'inside', 'C_FACT_NEW' => 'new') do
      Facter::Core::Execution.execute('printenv C_FACT_KEPT C_FACT_NEW')
    end
    [inside, ENV.fetch('C_FACT_KEPT', nil), ENV.fetch('C_FACT_NEW', nil)]
  end
end
Facter.add(:c_backticks) { setcode { `echo backticks`.chomp } }
Facter.add(:c_bytes) { setcode { Facter::Core::Execution.execute("printf 'a\\303\\244'").bytes } }
