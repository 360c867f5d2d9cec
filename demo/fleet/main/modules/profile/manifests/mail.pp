# Mail, which goes through a relay.
class profile::mail (String $relay) {
  package { 'postfix': ensure => installed }
  -> file { '/etc/postfix/main.cf': content => "relayhost = ${relay}\n" }
  ~> service { 'postfix': ensure => running, enable => true }
}
