class site::relations {
  Notify { tag => 'by_default', loglevel => notice }
  Exec { path => ['/usr/bin', '/bin'] }
  notify { ['one', 'two', 'three']: }
  notify { 'before several': before => [Notify['one'], [Notify['two'], Class['site::inner']]] }
  notify { 'of a define': subscribe => Site::Thing['a', 'b'] }
  site::thing { ['a', 'b']: notify => Exec['told'], tag => ['x', 'y-z'] }
  exec { 'told': command => 'true', refreshonly => true }
  exec { 'told and failing': command => 'true', refresh => 'false', subscribe => Notify['one'] }
  [Notify['one'], Notify['two']] -> Notify['three'] ~> Exec['told']
  Notify <| title == 'two' |> { message => 'changed by a collector', tag +> 'more' }
  include site::inner
  Class['site::inner'] -> Notify['three']
  schedule { 'never now': range => '3:00 - 3:01', weekday => 'Sun', periodmatch => 'distance', repeat => 1 }
  notify { 'scheduled': schedule => 'never' }
}
