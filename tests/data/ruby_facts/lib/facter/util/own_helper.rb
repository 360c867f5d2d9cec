module Facter::Util::OwnHelper
  def self.answer
    'of a helper'
  end
end
