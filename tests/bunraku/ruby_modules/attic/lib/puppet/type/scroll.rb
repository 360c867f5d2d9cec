# frozen_string_literal: true

require 'puppet/util/filetype'
require 'puppet/util/inifile'

# A file as Puppet's helpers read and write it: as a text, and as sections.
Puppet::Type.newtype(:scroll) do
  newparam(:path, namevar: true)

  newproperty(:text) do
    def file
      Puppet::Util::FileType.filetype(:flat).new(resource[:path])
    end

    def retrieve
      file.read.inspect
    end

    def sync
      file.write(should)
      :text_changed
    end
  end

  newproperty(:sections) do
    def retrieve
      ini = Puppet::Util::IniConfig::File.new
      ini.read(resource[:path])
      names = []
      ini.each_section { |section| names << section.name }
      names.join(',')
    end

    def sync; end
  end
end
