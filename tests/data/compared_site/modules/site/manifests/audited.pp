class site::audited {
  $root = "${facts['stage_root']}/audited"
  file { $root: ensure => directory, audit => [mode, owner] }
  file { "${root}/file": audit => content, content => 'x', backup => false, checksum => sha256, show_diff => false }
  file { "${root}/never": ensure => absent, force => true, noop => true }
  file { "${root}/only in noop": content => 'y', noop => true, loglevel => warning }
  file { "${root}/link": ensure => link, target => 'file' }
  notify { 'quiet': loglevel => debug }
}
