class site (Integer $port = 8080, Optional[String] $nothing = undef) {
  contain site::inner
  $root = $facts['stage_root']
  file { "${root}/conf": ensure => directory, tag => ['Zeta', 'alpha'], alias => ['conf', 'another'] }
  file { 'app config': path => "${root}/conf/app.conf", content => "port=${port}\n", require => File["${root}/conf/"],
    notify => [Exec['reload'], Notify['num']] }
  file { "${root}/secret": content => Sensitive('canary') }
  exec { 'reload': command => '/bin/true', refreshonly => true, tries => 2, try_sleep => 0 }
  notify { 'num': message => 42, alias => 'number' }
  notify { ['one', 'two']: require => [File['conf'], Class['site::inner']], subscribe => Exec['reload'] }
  Notify['one'] ~> Notify['two'] -> site::thing { 'one': size => 3, opts => { 'a' => 1, 'b' => [1, 2.5, true, undef, 'x'], 2 => 'e' },
    ver => SemVer('1.2.3'), re => /ab+c/, ts => Timestamp('2026-01-02T03:04:05Z'), span => Timespan('1-02:00:00'),
    type => Integer[1, 2], it => default, ref => File['conf'], range => SemVerRange('>=1.0.0 <2.0.0'), uri => URI('http://h/p') }
}
