Puppet::Type.type(:badge).provide(:pin) do
  has_feature :undeclared

  def exists?
    File.exist?(path)
  end

  def create
    File.write(path, %i[id file line purging worn size].map { |name| "#{name}=#{resource[name].inspect}\n" }.join)
  end

  def destroy; end

  def path
    "#{resource[:folder]}/#{resource[:name]}"
  end

  def clip
    ['b']
  end

  def edge
    'b'
  end

  def size
    resource[:size]
  end
end
