# frozen_string_literal: true

module Puppet
  module ResourceApi
    # What providers get besides resources: their type, and logging that names what is worked on.
    class BaseContext
      attr_reader :type

      def initialize(definition)
        @type = definition.is_a?(Hash) ? TypeDefinition.new(definition) : definition
        return if @type.is_a?(BaseTypeDefinition)

        raise ArgumentError, 'BaseContext requires definition to be a child of Puppet::ResourceApi::BaseTypeDefinition, ' \
                             "not <#{definition.class}>"
      end

      def device
        raise 'Received device() on an unprepared BaseContext. Use a PuppetContext instead.'
      end

      def transport
        raise 'No transport available.'
      end

      def failed?
        @failed
      end

      def reset_failed
        @failed = false
      end

      def feature_support?(feature)
        Puppet.deprecation_warning('context.feature_support? is deprecated. Please use context.type.feature? instead.')
        type.feature?(feature)
      end

      # --- lines of the log: `(message)`, or `(titles, message)`

      %i[debug info notice warning err].each do |level|
        define_method(level) do |*args|
          text =
            case args.length
            when 1 then "#{@context || type.name}: #{args.first}"
            when 2 then "#{place_of(args.first)}: #{args.last}"
            else args.map(&:to_s).join(', ')
            end
          send_log(level, text)
        end
      end

      # --- blocks whose begin, end and failure are logged; an exception in one fails the resource later

      %i[creating updating deleting].each do |action|
        define_method(action) do |titles, message: action.to_s.capitalize, &block|
          logged(titles, message, 'Start', -> { "Failed after #{seconds}" }) do
            block.call
            notice("Finished in #{seconds}")
          end
        end
      end

      def failing(titles, message: 'Failing')
        logged(titles, message, 'Start', -> { "Failed after #{seconds}" }) do
          yield
          warning("Finished failing in #{seconds}")
        end
      end

      def processing(title, is, should, message: 'Processing')
        one_title(__method__, title)
        logged(title, message, "Starting processing of #{title} from #{is} to #{should}", -> { "Failed processing #{title} after #{seconds}" }) do
          yield
          notice("Finished processing #{title} in #{seconds}: #{should}")
        end
      end

      # --- what has happened

      %i[created updated deleted].each do |action|
        define_method(action) { |titles, message: action.to_s.capitalize| notice("#{message}: #{titles}") }
      end

      def processed(title, is, should)
        one_title(__method__, title)
        notice("Processed #{title} from #{is} to #{should}")
      end

      def attribute_changed(title, attribute, is, should, message: nil)
        one_title(__method__, title)
        is, should = [is, should].map { |value| shown(value) }
        notice("#{title}: attribute '#{attribute}' changed from #{is} to #{should}#{message ? ": #{message}" : ''}")
      end

      def failed(titles, message: 'Updating has failed')
        @context = place_of(titles)
        err(message)
      ensure
        @context = nil
      end

      def log_exception(exception, message: 'Error encountered', trace: false)
        text = "#{message}: #{exception}"
        text += "\n#{(exception.backtrace || []).join("\n")}" if trace
        err(text)
      end

      def send_log(_level, _message)
        raise 'Received send_log() on an unprepared BaseContext. Use IOContext, or PuppetContext instead.'
      end

      private

      # Runs a block, as whose place log lines name `titles` and `message`.
      def logged(titles, message, first, failure)
        @began = Time.now
        @context = [place_of(titles), message].compact.join(': ')
        debug(first)
        yield
      rescue StandardError => e
        raise e if e.is_a?(Bunraku::Lacking)

        log_exception(e, message: failure.call)
        @failed = true
      ensure
        @context = nil
      end

      def one_title(method, title)
        raise "#{method} only accepts a single resource title" if title.respond_to?(:each)
      end

      def place_of(titles)
        return type.name if titles.empty? && !titles.is_a?(String)

        "#{type.name}[#{[titles].flatten.compact.join(', ')}]"
      end

      def shown(value)
        return value if value.is_a?(Numeric)

        value ? "'#{value}'" : 'nil'
      end

      def seconds
        taken = Time.now - @began
        "#{format(taken < 1 ? '%<taken>.6f' : '%<taken>.2f', taken: taken)} seconds"
      end
    end

    # The context of a run.
    class PuppetContext < BaseContext
      def device
        raise 'no device configured'
      end

      def transport
        device
      end

      protected

      def send_log(level, message)
        Puppet.send_log(level, message)
      end
    end

    # A context whose lines go to a stream.
    class IOContext < BaseContext
      attr_reader :transport

      def initialize(definition, target = $stderr, transport = nil)
        super(definition)
        @target = target
        @transport = transport
      end

      protected

      def send_log(level, message)
        @target.puts "#{level}: #{message}"
      end
    end
  end
end
