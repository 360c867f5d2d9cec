# Services that are files in the folder LAMPS.
Puppet::Type.type(:service).provide :lamp, parent: :base do
  has_feature :enableable, :refreshable

  def file(kind)
    File.join(ENV['LAMPS'], "#{@resource[:name]}.#{kind}")
  end

  def status
    File.exist?(file('on')) ? :running : :stopped
  end

  def start
    Puppet.notice("start #{@resource[:name]} #{@resource[:hasstatus].inspect} #{@resource[:ensure].inspect}")
    raise 'the bulb is broken' if @resource[:name] == 'broken'

    File.write(file('on'), '')
  end

  def stop
    File.unlink(file('on'))
  end

  def restart
    Puppet.notice("restart #{@resource[:name]}")
  end

  def enabled?
    File.exist?(file('boot')) ? :true : :false
  end

  def enable
    Puppet.notice('enable')
    File.write(file('boot'), '')
  end

  def disable
    File.unlink(file('boot'))
  end
end
