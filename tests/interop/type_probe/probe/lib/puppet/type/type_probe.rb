# frozen_string_literal: true

Puppet::Type.newtype(:type_probe) do
  @doc = 'Describes other types and what becomes of values in them, in a file of JSON.'

  ensurable

  newparam(:questions, namevar: true) do
    desc 'A file of JSON: `types`, a list of names; `values`, to be given to each attribute; `titles`; `base`, attributes by type.'
  end

  newparam(:answers) do
    desc 'The file that is written, a line of JSON for each type.'
  end
end
