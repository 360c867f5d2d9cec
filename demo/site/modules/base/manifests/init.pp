# What every machine has: a message for those who log in, sshd without passwords, aliases of shells.
class base (
  String[1] $root,
) {
  File { mode => '0644' }

  file { [$root, "${root}/ssh"]:
    ensure => directory,
    mode   => '0755',
  }

  file { "${root}/motd":
    content => epp('base/motd.epp', { accounts => $facts['login_accounts'] }),
  }

  file { "${root}/ssh/sshd_config":
    source => 'puppet:///modules/base/sshd_config',
    notify => Exec['reload sshd'],
  }

  # The demo has no sshd: a note stands in for its reload.
  exec { 'reload sshd':
    command     => "date > ${root}/ssh/reloaded",
    path        => ['/usr/bin', '/bin'],
    provider    => shell,
    refreshonly => true,
  }

  file { "${root}/aliases.sh":
    source => 'puppet:///modules/base/aliases.sh',
  }
}
