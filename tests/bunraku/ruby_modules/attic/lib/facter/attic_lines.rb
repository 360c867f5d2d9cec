Facter.add(:attic_lines) do
  confine kernel: 'Linux'
  setcode do
    count = File.exist?(ENV['LINES_FILE'].to_s) ? File.readlines(ENV['LINES_FILE']).grep(/more/).length : 0
    count.zero? ? nil : count
  end
end
