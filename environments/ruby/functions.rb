# frozen_string_literal: true

module Bunraku
  # A function of the 3.x API: a block that is called with an array, with the scope as `self`.
  class Function3
    def initialize(name, options, block)
      @arity = options[:arity] || -1
      @type = options[:type] || :statement
      # It is a method, because `return` may occur in it, and of a module, because such a method can be bound to any object.
      @code = Module.new { define_method(name, &block) }.instance_method(name)
    end

    def described
      { 'arity' => @arity, 'statement' => @type != :rvalue }
    end

    def call(_number, args, _block)
      without_undef(@code.bind_call(Puppet::Parser::Scope.new, args))
    end

    private

    # The language gets nil for the :undef of this API.
    def without_undef(value)
      case value
      when :undef then nil
      when Array then value.map { |each| without_undef(each) }
      when Hash then value.transform_values { |each| without_undef(each) }
      else value
      end
    end
  end

  # One signature: the content of `dispatch :method do … end`.
  class Dispatch
    attr_reader :described

    def initialize(method, mismatch)
      @method = method
      @places = []
      @described = { 'method' => method.to_s, 'parameters' => [], 'mismatch' => mismatch }
    end

    { param: '', required_param: '', optional_param: '?', repeated_param: '*', optional_repeated_param: '*',
      required_repeated_param: '+' }.each do |word, mark|
      define_method(word) do |type, name|
        @places << :argument
        @described['parameters'] << "#{type.to_s.tr("\n", ' ')} #{name}#{mark}"
      end
    end

    def block_param(type = 'Callable', name = nil)
      type, name = 'Callable', type if name.nil? && type.is_a?(Symbol)
      @described['parameters'] << "#{type} &#{name || :block}"
    end
    alias required_block_param block_param

    def optional_block_param(*type_and_name)
      block_param(*type_and_name)
      @described['parameters'].last << '?'
    end

    def return_type(type)
      @described['returns'] = type.to_s
    end

    def scope_param
      @places << :scope
    end

    def method_missing(name, *)
      raise Lacking, "#{name} of a dispatch"
    end

    def respond_to_missing?(*)
      false
    end

    def call(function, args, block)
      rest = args.dup
      given = @places.flat_map { |place| place == :scope ? [Puppet::Parser::Scope.new] : rest.shift(1) }
      function.send(@method, *given, *rest, &block)
    end
  end

  # A function of the 4.x API: a class with dispatches.
  class Function4
    def initialize(name, made)
      @dispatches = made.dispatches
      @aliases = made.aliases
      @function = made.new(nil, nil)
      @dispatches << default(name.split('::').last.to_sym) if @dispatches.empty?
    end

    def described
      { 'dispatches' => @dispatches.map(&:described), 'aliases' => @aliases }
    end

    def call(number, args, block)
      @dispatches.fetch(number).call(@function, args, block)
    end

    private

    def default(method)
      unless @function.respond_to?(method, true)
        raise ArgumentError, "cannot create a default dispatcher for function '#{method}', no method with this name found"
      end

      Dispatch.new(method, false).tap do |made|
        words = { req: :param, opt: :optional_param, rest: :repeated_param }
        @function.method(method).parameters.each { |kind, name| made.send(words[kind], 'Any', name || :args) if words.key?(kind) }
      end
    end
  end
end

module Puppet
  module Functions
    extend Bunraku::Lacks

    # The base class of functions of the 4.x API. They see top scope, wherever they are called.
    class Function
      class << self
        def dispatches
          @dispatches ||= []
        end

        def aliases
          @aliases ||= {}
        end

        def dispatch(method, &block)
          dispatches << Bunraku::Dispatch.new(method, false).tap { |made| made.instance_eval(&block) }
        end

        def argument_mismatch(method, &block)
          dispatches << Bunraku::Dispatch.new(method, true).tap { |made| made.instance_eval(&block) }
        end

        def local_types(&block)
          instance_eval(&block)
        end

        def type(text)
          name, definition = text.split('=', 2)
          aliases[name.strip] = definition.to_s.strip
        end
      end

      def initialize(_closure_scope, _loader); end

      def closure_scope
        Puppet::Parser::Scope.new(top: true)
      end

      def call_function(name, *args, &block)
        closure_scope.call_function(name, args, &block)
      end
    end

    # Only the part that modules use.
    class InternalFunction < Function
      def call_function_with_scope(scope, name, *args, &block)
        scope.call_function(name, args, &block)
      end
    end

    def self.create_function(name, base = Function, &block)
      made = Class.new(base)
      made.class_eval(&block)
      Bunraku::Definitions.add(name, Bunraku::Function4.new(name.to_s, made))
      made
    end
  end

  module Parser
    module Functions
      extend Bunraku::Lacks

      def self.newfunction(name, options = {}, &block)
        Bunraku::Definitions.add(name, Bunraku::Function3.new(name, options, block))
      end

      # The name of the method that calls a function; false when there is none.
      def self.function(name, *)
        Bunraku.ask('function?', name.to_s) && "function_#{name}"
      end

      # Functions are searched when they are called, so there is nothing to load.
      def self.autoloader
        Module.new do
          def self.loadall; end

          def self.load(*); end
        end
      end
    end
  end
end
