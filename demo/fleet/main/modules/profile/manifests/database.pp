# A database and the password of its application.
class profile::database (String $listen, Sensitive[String] $password) {
  package { 'postgresql': ensure => installed }
  -> file { '/etc/postgresql/main.conf': content => "listen_addresses = '${listen}'\nmax_connections = 100\n" }
  -> file { '/root/.pgpass': content => Sensitive("*:*:*:app:${password.unwrap}\n"), mode => '0600' }
  ~> service { 'postgresql': ensure => running, enable => true }
}
