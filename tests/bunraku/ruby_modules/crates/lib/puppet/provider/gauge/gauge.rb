# frozen_string_literal: true

require_relative '../../../puppet_x/crates/depot'

# Gauges.
class Puppet::Provider::Gauge::Gauge
  def get(_context)
    PuppetX::Depot.new('gauges').things.map { |name, values| { name: name, level: values['level'], words: values['words'] } }
  end

  def set(context, changes)
    changes.each do |name, change|
      context.updating(name, message: 'Turning') do
        PuppetX::Depot.new('gauges').put(name, 'level' => change[:should][:level], 'words' => change[:should][:words])
      end
    end
  end

  def insync?(_context, name, attribute, is, should)
    case attribute
    when :level
      return 'perhaps' if should[:slack] == 99

      off = (is[:level].to_i - should[:level]).abs
      [off <= should[:slack], "#{name} is off by #{off}"]
    when :words then is[:words].to_s.casecmp(should[:words].to_s).zero? ? true : nil
    end
  end
end
