# frozen_string_literal: true

require 'tempfile'

module Puppet
  module Util
    # Differences between files, by the program that the setting `diff` names.
    module Diff
      extend Bunraku::Lacks

      # Returns the differences between two files; '' without a program.
      def diff(old, new)
        program = Puppet[:diff].to_s
        return '' if program.empty?

        Puppet::Util::Execution.execute([program, *Puppet[:diff_args].to_s.split, old, new], failonfail: false, combine: false)
      end
      module_function :diff
      public :diff

      # Logs the differences between a file and a text.
      def string_file_diff(path, text)
        Tempfile.create('puppet-diffing') do |file|
          file.write(text)
          file.close
          notice("\n#{diff(path, file.path)}")
        end
      end
    end
  end
end
