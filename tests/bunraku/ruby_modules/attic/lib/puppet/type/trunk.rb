Puppet::Type.newtype(:trunk) do
  @doc = 'A trunk that tells what it was given.'

  newparam(:name, namevar: true)
  newparam(:heavy) do
    newvalues(:true, :false) # rubocop:disable Lint/BooleanSymbol -- as modules write it
    defaultto false
  end

  newparam(:id)
  newparam(:user)
  newparam(:command)
  newparam(:folder)

  newproperty(:told) do
    def retrieve
      return count if resource[:command] == 'count'
      return fill if resource[:command] == 'fill'
      return Puppet::Type.type(:service).new(name: 'no-such-service').provider.status.inspect if resource[:command] == 'service'

      return run(resource[:command]) if resource[:command]

      "heavy: #{resource[:heavy].inspect}, #{resource.value(:heavy).inspect}, id: #{resource[:id].inspect}"
    end

    def count
      counts = Array.new(2) do
        File.write(ENV['LINES_FILE'], "one = more\n", mode: 'a')
        Facter.fact(:attic_lines).value
      end
      `exit 3`
      "#{counts.inspect} #{$CHILD_STATUS.exitstatus}"
    end

    def fill
      other = resource.catalog.resource("File[#{resource[:folder]}]")
      other[:content] = "filled\n"
      "#{other.class} #{resource.catalog.resource('File[/nothing]').inspect}"
    end

    def run(command)
      output = Puppet::Util::Execution.execute(command, uid: resource[:user], cwd: resource[:folder], failonfail: true, combine: true)
      as_user = Puppet::Util::SUIDManager.asuser(resource[:user]) { [Process.uid, Process.euid, Process.egid, resource[:user] && Process.groups] }
      "#{output} #{output.exitstatus} #{as_user} #{[Process.euid, Process.egid]}"
    end

    def set(_value); end
  end

  newproperty(:lid) do
    newvalue(:torn) { raise 'it is torn' }
    newvalue(:burst) { raise Puppet::Error.new('it has burst', ArgumentError.new('by force')) }

    def retrieve
      raise Puppet::Error.new('no lid', IOError.new('not found')) if resource[:command] == 'no lid'

      :shut
    end
  end

  autorequire(:class) { 'house' }
  autorequire(:nothing_like_it) { 'x' }
end
