# Reads its file once a resource, and writes all of it.
Puppet::Type.type(:ledger).provide(:whole) do
  def exists?
    resource[:value] = entries['default'] if resource[:value] == 'as the default'
    entries.key?(resource[:name])
  end

  def create
    self.value = resource[:value]
  end

  def destroy
    entries.delete(resource[:name])
    save
  end

  def value
    entries[resource[:name]]
  end

  def value=(value)
    entries[resource[:name]] = value
    save
  end

  private

  def entries
    @entries ||= File.readlines(resource[:file]).map { |line| line.chomp.split('=', 2) }.to_h
  end

  def save
    File.write(resource[:file], entries.map { |name, value| "#{name}=#{value}\n" }.join)
  end
end
