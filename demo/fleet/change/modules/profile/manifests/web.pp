# Web servers and the sites on each of them.
class profile::web (Hash[String, Hash] $sites, Integer $workers = 4) {
  package { ['nginx', 'certbot']: ensure => installed }
  -> file { '/etc/nginx/nginx.conf':
    content => epp('profile/nginx.conf.epp', { 'workers' => $workers }),
  }
  ~> service { 'nginx': ensure => running, enable => true }

  $sites.each |$name, $site| {
    file { "/etc/nginx/sites-enabled/${name}.conf":
      content => epp('profile/site.conf.epp', { 'name' => $name, 'root' => $site['root'], 'host' => $facts['networking']['fqdn'] }),
      notify  => Service['nginx'],
    }
  }
}
