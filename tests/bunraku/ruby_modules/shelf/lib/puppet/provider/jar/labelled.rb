Puppet::Type.type(:jar).provide(:labelled, parent: :plain) do
  has_feature :lids
  confine true: Facter.value(:kernel) == 'Linux'
  defaultfor kernel: :nosuch

  def label
    data['label'] || :absent
  end

  def label=(value)
    nothing('x') if value == 'nothing'
    save('label' => value)
  end
end
