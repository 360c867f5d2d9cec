# Mail, which goes through a relay.
class profile::mail (String $relay, Integer[1, 65535] $port) {
  package { 'postfix': ensure => installed }
  -> file { '/etc/postfix/main.cf': content => "relayhost = ${relay}:${port}\n" }
  ~> service { 'postfix': ensure => running, enable => true }
}
