# Only what its parent does.
Puppet::Type.type(:service).provide :candle, parent: :base do
end
