class site::data (
  Hash $tree = { 'a' => { 'b' => [1, { 'c' => undef }] } },
  Optional[Array] $list = undef,
  Variant[Integer, String] $either = 7,
  Sensitive[String] $secret = Sensitive('canary'),
  Type $type = Hash[String, Array[Integer[0, default], 1]],
  Any $nothing = undef,
  Float $ratio = 0.1,
  Boolean $switch = false,
  Regexp $pattern = /^a\/b$/,
  Timestamp $moment = Timestamp('2026-01-02T03:04:05.678Z'),
  Binary $bytes = Binary('aGVsbG8='),
) {
  site::thing { 'by data': size => 1 + $tree['a']['b'][0], opts => $tree, it => $either, re => $pattern, type => $type, ts => $moment,
    uri => $bytes, ver => $ratio }
  class { 'site::base': }
}
