# What every machine has: the time, and a word for who logs in.
class profile::base (Array[String] $ntp_servers, String $contact) {
  package { 'chrony': ensure => installed }
  -> file { '/etc/chrony/chrony.conf': content => epp('profile/chrony.conf.epp', { 'servers' => $ntp_servers }) }
  ~> service { 'chrony': ensure => running, enable => true }

  file { '/etc/motd': content => "${facts['networking']['fqdn']}, ${facts['role']}; ask ${contact}\n" }
}
