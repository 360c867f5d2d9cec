# A message of the day: a template, a directory from the master, a command that runs when the message changes.
class motd (
  String[1]        $root,
  Array[String[1]] $people  = [],
  Enum['on','off'] $welcome = 'on',
) {
  File { mode => '0644' }

  file { $root:
    ensure => directory,
    mode   => '0755',
  }

  file { "${root}/motd":
    content => epp('motd/motd.epp', { people => $people }),
    notify  => Exec['count words'],
  }

  file { "${root}/profile.d":
    ensure  => directory,
    source  => 'puppet:///modules/motd/profile.d',
    recurse => true,
  }

  exec { 'count words':
    command     => "wc -w < ${root}/motd > ${root}/words",
    path        => ['/usr/bin', '/bin'],
    provider    => shell,
    refreshonly => true,
  }

  $people.each |$index, $person| {
    motd::greeting { $person:
      path    => "${root}/greeting-${index}",
      require => File[$root],
    }
  }
}
