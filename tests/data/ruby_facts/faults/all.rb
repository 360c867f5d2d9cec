# Each of these facts misbehaves; tests/agent/facts/test_ruby_facts.py says what becomes of it.

Facter.add(:first) { setcode { 'first' } }
Facter.add(:loops) { setcode { loop {} } }
Facter.add(:loops_in_a_command) { setcode { `sleep 1000` } }
Facter.add(:loops_in_a_pattern) { setcode { "#{'a' * 40}!".match?(/^(a+)+$/) } }
Facter.add(:asks_for_one_that_loops) { setcode { [Facter.value(:loops), 'went on'] } }
Facter.add(:exits) { setcode { exit 3 } }
Facter.add(:exits_at_once) { setcode { exit! 3 } }
Facter.add(:aborts) { setcode { abort 'good bye' } }
Facter.add(:is_killed) { setcode { Process.kill(:KILL, Process.pid) && sleep } }
Facter.add(:is_terminated) { setcode { Process.kill(:TERM, Process.pid) && sleep(5) } }
Facter.add(:crashes) { setcode { Process.kill(:SEGV, Process.pid) && sleep(5) } }
Facter.add(:forks) { setcode { fork && 'forked' } }
Facter.add(:forks_a_block) { setcode { fork { sleep 1000 } && 'forked' } }
Facter.add(:goes_to_the_background) { setcode { Process.daemon && 'in the background' } }
Facter.add(:takes_memory) { setcode { loop { (@parts ||= []) << ('x' * 10_000_000) } } }
Facter.add(:takes_memory_at_once) { setcode { ('x' * (3 << 30)).length } }
Facter.add(:prints) { setcode { puts('{"garbage": 1}') || 'printed' } }
Facter.add(:floods_stdout) { setcode { 500.times { puts 'x' * 10_000 } && 'flooded' } }
Facter.add(:floods_stderr) { setcode { 500.times { warn 'x' * 10_000 } && 'flooded' } }
Facter.add(:floods_the_log) { setcode { 500.times { |number| Facter.warn("#{number} #{'x' * 1000}") } && 'flooded' } }
Facter.add(:fails_after_a_flood) { setcode { 500.times { |number| Facter.debug("#{number} #{'y' * 1000}") } && raise('after all') } }
Facter.add(:is_large) { setcode { 'x' * 3_000_000 } }
Facter.add(:recurses) { setcode { (@deeper = -> { @deeper.call }).call } }
Facter.add(:throws) { setcode { throw :nothing } }
Facter.add(:writes_everywhere) do
  setcode do
    (3..30).each { |number| IO.for_fd(number, 'wb', autoclose: false).syswrite('garbage!' * 10) rescue nil } # rubocop:disable all
    sleep 5
  end
end
Facter.add(:closes_all) { setcode { ObjectSpace.each_object(IO) { |io| io.close rescue nil } && 'closed' } } # rubocop:disable all
Facter.add(:opens_files) { setcode { Process.setrlimit(:NOFILE, 40) || ($files = Array.new(60) { File.open('/dev/null') }) } }
Facter.add(:closes_stdout) { setcode { $stdout.close || 'closed' } }
Facter.add(:uses_threads) { setcode { Thread.new { Facter.value(:kernel) && Facter.warn('by a thread') }.join && Thread.new { loop {} } && 'threads' } }
Facter.add(:changes_the_folder) { setcode { Dir.chdir('/etc') && 'changed' } }
Facter.add(:changes_frozen_text) { setcode { Facter.value(:kernel).dup << '!' } }
Facter.add(:uses_puppet) { setcode { Puppet::HTTP::Client.new } }
Facter.add(:reads_a_secret) { setcode { Puppet[:http_proxy_password] } }
Facter.add(:is_declared_wrongly, nonsense: 1) { setcode { 1 } }
Facter.add(:has_a_wrong_kind, type: :nonsense) { setcode { 1 } }
Facter.add(:has_no_code) { setcode }
Facter.add(:after_a_wrong_one) { setcode { 'is there' } }
shared = nil
Facter.add(:sets_what_another_reads) { setcode { (shared = [1, 2]) && true } }
Facter.add(:reads_what_another_set) { confine(sets_what_another_reads: true) && setcode { shared.length } }
Facter.add(:last) { setcode { 'last' } }
