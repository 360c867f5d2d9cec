# frozen_string_literal: true

module Bunraku
  # What modules' Ruby prints, which nobody expects: some text for people to read, which cannot steer their terminal.
  #
  # Copies of the process, and who has sent the output elsewhere, print what they like. So do other programs that Ruby starts.
  module Printing
    LIMIT = 1 << 16 # characters for one question of the other side's
    UNPRINTABLE = /[[\p{C}\p{Zl}\p{Zp}]&&[^\n\t]]/.freeze

    class << self
      attr_writer :remaining

      def begin
        @remaining = LIMIT
        [STDOUT, STDERR].each do |stream|
          stream.sync = true # the process may be ended at any time
          stream.extend(self)
        end
        Warning.extend(Warnings)
      end

      # Returns as much of a text as may be printed still.
      def plain(value)
        return '' if @remaining.negative?

        text = Wire.text(value)
        shown = text[0, @remaining].gsub(UNPRINTABLE) { |each| format(each.ord < 256 ? '\x%02x' : '\u{%x}', each.ord) }
        @remaining -= text.length
        @remaining.negative? ? "#{shown}\n(Ruby prints more than #{LIMIT} characters; the rest is left out)\n" : shown
      end
    end

    # `warn` and Ruby's own warnings, which would not call `write`.
    module Warnings
      def warn(message, *)
        $stderr.write(message)
        nil
      end
    end

    def reopen(*)
      @elsewhere = true
      super
    end

    def write(*values)
      return super if @elsewhere || Bunraku.channel.forked?

      super(*values.map { |value| Printing.plain(value) })
      values.sum { |value| value.to_s.bytesize }
    end
  end
end
