define site::thing (Integer $size = 1, Hash $opts = {}, $ver = 0, $re = 0, $ts = 0, $span = 0, $type = 0, $it = 0, $ref = 0, $range = 0,
  $uri = 0) {
  notify { "${title} ${size}": tag => 'of_thing' }
}
