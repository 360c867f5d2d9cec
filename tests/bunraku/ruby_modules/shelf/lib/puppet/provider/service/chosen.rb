# The default, where the environment says so.
Puppet::Type.type(:service).provide :chosen, parent: :lamp do
  confine true: ENV['CHOSEN'] == 'yes'
  defaultfor kernel: 'Linux', 'os.family': %w[Debian]
end
