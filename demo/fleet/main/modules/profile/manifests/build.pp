# What software is built with.
class profile::build {
  package { ['build-essential', 'git', 'ccache']: ensure => installed }
  file { '/etc/ccache.conf': content => "max_size = 20G\n" }
}
