require_relative '../jar'

Puppet::Type.type(:jar).provide(:plain, parent: Puppet::Provider::Jar) do
  commands cat: 'cat'
  optional_commands nothing: '/nonexistent/program'

  def exists?
    File.exist?(path)
  end

  def create
    pairs = %i[content colour parts label].map { |name| [name.to_s, @resource.should(name)] }.reject { |_, value| value.nil? }
    save(pairs.map { |name, value| [name, value.is_a?(Symbol) ? value.to_s : value] }.to_h)
    info("created as #{@resource}")
  end

  def destroy
    File.unlink(path)
  end

  def seal
    raise Puppet::Error, 'nothing to seal' unless exists?

    cat('/nonexistent/file')
  end

  def content
    data['content'] || :absent
  end

  def content=(value)
    save('content' => value)
  end

  def colour
    (data['colour'] || :absent).to_sym
  end

  def colour=(value)
    raise 'no paint' if value.to_s == 'custom-none'

    save('colour' => value.to_s)
  end

  def parts
    data['parts'] || []
  end

  def parts=(value)
    save('parts' => value)
  end
end
