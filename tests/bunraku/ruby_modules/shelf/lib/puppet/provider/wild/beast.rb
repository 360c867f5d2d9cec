require 'tmpdir'

# Does what no provider should, and is there afterwards.
Puppet::Type.type(:wild).provide(:beast) do
  def self.prefetch(resources)
    resources.each_value { |resource| resource.act('prefetch') }
  end

  def exists?
    @resource.act('read')
    file.exist?
  end

  def state
    { 'latin state' => "caf\xE9".dup.force_encoding('ISO-8859-1'), 'utf-16 state' => 'café'.encode('UTF-16LE'), 'bytes state' => "caf\xE9 \xFF",
      'symbol state' => { one: [:two, nil, 1.5, Float::NAN] }, 'object state' => Object }[@resource[:how]]
  end

  def state=(value)
    Puppet.notice("set #{value.inspect}")
  end

  def create
    @resource.act('create')
    file.write('done')
  end

  def destroy
    file.delete
  end

  def flush
    @resource.act('flush')
    Puppet::Util::Execution.execute(['true'], failonfail: true)
  end

  def file
    Pathname.new(File.join(@resource[:folder], @resource[:name]))
  end
end
