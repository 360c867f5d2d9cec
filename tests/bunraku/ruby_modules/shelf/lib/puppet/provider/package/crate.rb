# Packages that are files in the folder CRATES: name, then version. Those that can be had are in `available`.
require 'puppet/provider/package'

Puppet::Type.type(:package).provide :crate, parent: Puppet::Provider::Package do
  desc 'Packages in a folder.'
  has_feature :versionable, :install_options, :uninstall_options
  commands touch: 'touch'

  def self.root
    ENV['CRATES']
  end

  def self.instances
    Puppet.notice('crates are listed')
    Dir[File.join(root, '*.crate')].sort.map { |file| new(name: File.basename(file, '.crate'), ensure: File.read(file).strip, provider: name) }
  end

  def file
    File.join(self.class.root, "#{@resource[:name]}.crate")
  end

  def query
    File.exist?(file) ? { name: @resource[:name], ensure: File.read(file).strip, provider: :crate } : nil
  end

  def install
    wanted = @resource.should(:ensure)
    raise Puppet::Error, "no crate #{@resource[:name]}" if @resource[:name] == 'none'
    exit!(3) if @resource[:name] == 'fatal'

    Puppet.notice("install #{@resource[:name]} #{wanted.inspect} #{join_options(@resource[:install_options]).inspect} #{@resource[:source].inspect}")
    touch(file)
    File.write(file, wanted.is_a?(Symbol) ? latest : wanted)
  end

  def update
    install
  end

  def latest
    raise 'the net is down' if @resource[:name] == 'offline'

    '2.0'
  end

  def uninstall
    Puppet.notice("uninstall #{join_options(@resource[:uninstall_options]).inspect}")
    File.unlink(file)
  end
end
