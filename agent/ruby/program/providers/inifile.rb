# frozen_string_literal: true

require_relative 'filetype'

module Puppet
  module Util
    # Files of sections with settings; what is not changed stays as it is, comments too.
    module IniConfig
      extend Bunraku::Lacks

      class IniParseError < Puppet::Error; end

      # A section: lines of text, and pairs of a name and a value.
      class Section
        attr_reader :name, :file, :entries
        attr_writer :destroy

        def initialize(name, file)
          @name = name
          @file = file
          @entries = []
          @changed = false
          @destroy = false
        end

        def destroy?
          @destroy
        end

        def dirty?
          @changed || @destroy
        end

        def mark_dirty
          @changed = true
        end

        def mark_clean
          @changed = false
        end

        def add_line(line)
          @entries << line
        end

        def [](key)
          pair(key)&.last
        end

        def []=(key, value)
          found = pair(key)
          return if found && found.last == value

          mark_dirty
          found ? found[1] = value : @entries << [key, value]
        end

        def format
          return '' if @destroy

          text = @name ? +"[#{@name}]\n" : +''
          @entries.each do |entry|
            next text << entry unless entry.is_a?(Array)

            text << "#{entry[0]}=#{entry[1]}\n" unless entry[1].nil?
          end
          text
        end

        private

        def pair(key)
          @entries.find { |entry| entry.is_a?(Array) && entry[0] == key }
        end
      end

      # One file.
      class PhysicalFile
        attr_reader :contents, :filetype
        attr_accessor :destroy_empty, :file_collection

        def initialize(file, options = {})
          @file = file
          @contents = []
          @filetype = Puppet::Util::FileType.filetype(:flat).new(file)
          @destroy_empty = options.fetch(:destroy_empty, false)
        end

        def read
          parse(@filetype.read)
        end

        def parse(text)
          section = nil
          last = nil
          text.each_line.with_index(1) do |line, number|
            if line.match?(/\A\s*(?:[#;]|$)/) then section ? section.add_line(line) : @contents << line
            elsif line.match?(/\A[ \t\r\n\f]/) && section && last then section[last] += "\n#{line.chomp}"
            elsif (match = line.match(/\A\[([^\]]+)\]/))
              section&.mark_clean
              section = add_section(match[1])
              last = nil
            elsif (match = line.match(/\A\s*([^\s=]+)\s*=\s*(.*)$/))
              raise IniParseError, "Property with key #{match[1].inspect} outside of a section" unless section

              section[last = match[1]] = match[2].rstrip
            else
              raise IniParseError, "Can't parse line '#{line.chomp}' (file: #{@file}, line: #{number})"
            end
          end
          section&.mark_clean
        end

        def sections
          @contents.select { |entry| entry.is_a?(Section) }
        end

        def get_section(name)
          sections.find { |section| section.name == name }
        end

        def format
          @contents.map { |entry| entry.is_a?(Section) ? entry.format : entry }.join
        end

        def store
          if @destroy_empty && sections.all?(&:destroy?) then ::File.unlink(@file)
          elsif sections.any?(&:dirty?) then @filetype.write(format)
          end
          sections.each(&:mark_clean)
        end

        def add_section(name)
          raise IniParseError, "Section #{name.inspect} is already defined, cannot redefine" if get_section(name) || @file_collection&.get_section(name)

          Section.new(name, @file).tap { |section| @contents << section }
        end
      end

      # Several files, which have each section only once.
      class FileCollection
        include Enumerable

        attr_reader :files

        def initialize
          @files = {}
        end

        def read(file)
          physical(file).read
        end

        def store
          @files.each_value(&:store)
        end

        def each_section(&block)
          @files.each_value { |file| file.sections.each(&block) }
        end
        alias each each_section

        def each_file(&block)
          @files.each_key(&block)
        end

        def get_section(name)
          find { |section| section.name == name }
        end
        alias [] get_section

        def include?(name)
          !get_section(name).nil?
        end
        alias section_exists? include?

        def add_section(name, file)
          physical(file).add_section(name)
        end

        private

        def physical(file)
          @files[file] ||= PhysicalFile.new(file).tap { |made| made.file_collection = self }
        end
      end

      File = FileCollection
    end
  end
end
