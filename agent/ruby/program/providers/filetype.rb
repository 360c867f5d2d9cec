# frozen_string_literal: true

module Puppet
  module Util
    # Where text is kept: in a file, or with `ram` only in memory.
    class FileType
      class FileReadError < Puppet::Error; end

      @types = {}

      class << self
        attr_accessor :name

        def filetype(name)
          FileType.instance_variable_get(:@types)[name.to_sym] or raise Bunraku::Lacking, "Puppet::Util::FileType.filetype(:#{name})"
        end

        def newfiletype(name, &block)
          made = Class.new(FileType, &block)
          made.name = name.to_sym
          made.prepend(Checked)
          FileType.instance_variable_get(:@types)[name.to_sym] = made
        end
      end

      # What reading and writing is for all of them: without the lines that a provider puts above its records; nothing is an empty text.
      module Checked
        def read
          attempt('read') { super.to_s.gsub(/# HEADER.*\n/, '').tap { @loaded = Time.now } }
        end

        def write(text)
          attempt('write') { super.tap { @synced = Time.now } }
        end

        private

        def attempt(action)
          yield
        rescue Puppet::Error
          raise
        rescue StandardError => e
          message = "Puppet::Util::FileType::FileType#{self.class.name.capitalize} could not #{action} #{@path}: #{e}"
          Puppet.log_exception(e, message)
          raise Puppet::Error, message, e.backtrace
        end
      end

      attr_accessor :loaded, :path, :synced

      def initialize(path, default_mode = nil)
        raise ArgumentError, 'Path is nil' if path.nil?

        @path = path
        @default_mode = default_mode
      end

      newfiletype(:flat) do
        def read
          File.read(@path, encoding: Encoding.default_external) if File.exist?(@path)
        end

        def remove
          File.unlink(@path) if File.exist?(@path)
        end

        # Owner and mode of a file that is there stay as they are.
        def write(text)
          there = File.exist?(@path)
          Puppet::Util.replace_file(@path, @default_mode || 0o600) { |file| file.write(text) } unless there
          Puppet::Util.replace_file(@path) { |file| file.write(text) } if there
          File.chmod(@default_mode, @path) if @default_mode && !there
        end
      end

      newfiletype(:ram) do
        @texts = {}

        class << self
          attr_reader :texts

          def clear
            @texts.clear
          end
        end

        def read
          self.class.texts[@path] ||= ''
        end

        def remove
          self.class.texts[@path] = ''
        end

        def write(text)
          self.class.texts[@path] = text
        end
      end
    end
  end
end
