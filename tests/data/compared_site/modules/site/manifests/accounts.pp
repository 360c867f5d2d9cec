class site::accounts {
  group { 'crew': ensure => present, gid => 3000, system => false }
  user { 'bob': ensure => present, gid => 'crew', groups => ['b', 'a'], managehome => true, shell => '/bin/sh', password => Sensitive('canary'),
    comment => 'Bob, the first', purge_ssh_keys => false }
  user { 'nobody': ensure => present }
  package { 'no-such-package-at-all': ensure => '1:2.3-4' }
  package { 'bash': ensure => installed }
  service { 'no-such-service-at-all': ensure => running, enable => true, hasrestart => true }
}
