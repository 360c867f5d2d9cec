Puppet::Type.newtype(:wild) do
  ensurable
  newparam(:name, namevar: true)
  newparam(:folder)
  newparam(:at) { defaultto 'create' }
  newparam(:how) { munge { |value| value == 'munged exit' ? exit!(3) : value } }
  newproperty(:state)

  # Does what no type or provider should, when the resource says that this is the place for it.
  def act(place)
    return if self[:at] != place

    case self[:how]
    when 'exit' then exit!(3)
    when 'polite exit' then exit
    when 'kill' then Process.kill(:KILL, Process.pid) && sleep
    when 'hang' then sleep
    when 'begin and hang' then File.write(File.join(self[:folder], 'begun'), '') && sleep
    when 'loop' then loop {}
    when 'ask' then loop { Puppet[:vardir] }
    when 'eat' then Array.new(200) { |n| (+'x' * 10_000_000).tap { sleep 0.01 } << n.to_s }.then { sleep }
    when 'flood' then Puppet.notice('x' * 4_000_000)
    when 'babble' then loop { Puppet.notice('all the time the same') }
    when 'answer' then raise Puppet::Error, 'x' * 4_000_000
    when 'deep' then act(place)
    when 'fork' then Process.wait(fork { exit! })
    when 'fork on' then (pid = fork) && Process.wait(pid)
    when 'fork and log' then Process.wait(fork { Puppet.notice('from the child') && Facter.value('kernel') })
    when 'fork and stay' then fork { sleep 30 } && exit!(3)
    when 'stay' then copies.each { |pid| Process.detach(pid) }
    when 'open' then Process.setrlimit(:NOFILE, 64) || ($open = Array.new(100) { File.open('/dev/null') })
    when 'print' then $stdout.puts('garbage') || system('echo more garbage')
    when 'descriptors' then Puppet.notice("descriptors #{Dir.children('/proc/self/fd').map { |each| File.readlink("/proc/self/fd/#{each}") rescue '' }}")
    when 'scribble' then ObjectSpace.each_object(IO) { |io| io.write('garbage' * 9) && io.flush unless io.closed? || io.fileno < 3 }
    when 'daemon' then File.write(File.join(self[:folder], 'pid'), spawn('sleep', '600'))
    when 'close' then ObjectSpace.each_object(IO) { |io| io.close unless io.closed? || io.fileno < 3 }
    when 'leave' then Dir.mktmpdir { |folder| Dir.chdir(folder) } # the folder that it is in is no more
    when 'exception' then raise Exception, 'not even a StandardError'
    when 'throw' then throw :nowhere
    when 'latin' then raise Puppet::Error, "caf\xE9".dup.force_encoding('ISO-8859-1')
    when 'utf-16' then raise Puppet::Error, 'café'.encode('UTF-16LE')
    when 'bytes' then raise Puppet::Error, "caf\xE9 \xFF"
    when 'lacks' then Puppet::Network::HttpPool.http_instance('x')
    when 'setting' then Puppet[:certificate_revocation]
    when 'type error' then nil + 1
    when /\Afetch (.+)/ then Puppet.notice("fetched #{Puppet::FileServing::Content.indirection.find($1)&.content.inspect}")
    end
  end

  # Copies of this process that stay, whose numbers are in the file `pids`.
  def copies
    pids = [fork { sleep 600 }, fork { Process.setsid && sleep(600) }, fork || sleep(600), Process.fork { sleep 600 }]
    pids << ((pipe = IO.popen('-')) ? pipe.pid : sleep(600))
    File.write(File.join(self[:folder], 'pids'), pids.join(' '))
    pids
  end

  validate { act('validate') }
  autorequire(:file) { act('relate') && [] }

  def generate
    act('generate')
    []
  end

  def pre_run_check
    act('check')
  end

  def refresh
    act('refresh')
  end
end
