stage { 'early': before => Stage['main'] }
File { mode => '0644' }
node /^web/ {
  class { 'site::base': stage => 'early' }
  include site
  @@file { "${facts['stage_root']}/from-${trusted['hostname']}": content => "${trusted['certname']}\n", tag => ['Shared', 'a::b'] }
  @@notify { "exported by ${trusted['hostname']}": message => 'hi', loglevel => info, require => File['/nowhere'] }
  @@site::thing { "thing of ${trusted['hostname']}": size => 3 }
  @notify { 'virtual': }
  @notify { 'realized': tag => 'now' }
  realize Notify['realized']
}
node /^col/ {
  File <<| tag == 'Shared' |>> { mode => '0600' } -> notify { 'after the files': }
  Site::Thing <<| size == 3 or title == 'x' |>>
  Notify <<| message != 'hi' and tag == 'none' |>>
  @@notify { 'own export': tag => 'own' }
  Notify <<| tag == 'own' |>> { withpath => true }
  notify { "nodes: ${puppetdb_query('nodes[certname]{}').length}": }
}
node /^fail/ {
  file { "${facts['stage_root']}/ok": content => 'ok' }
  exec { '/bin/false': }
  exec { '/bin/echo skipped': require => Exec['/bin/false'] }
}
node /^err/ { fail('not today') }
node /^relations/ { include site::relations }
node /^words/ { include site::words }
node /^data/ { include site::data }
node /^accounts/ { include site::accounts }
node /^audit/ { include site::audited }
node /^drift/ { include site::drifting }
node /^tree/ { include site::tree }
node /^virtual/ { include site::virtuals }
node /^twice/ { notify { 'twice': } notify { 'twice': message => 'again' } }
node /^circle/ { notify { 'a': require => Notify['b'] } notify { 'b': require => Notify['a'] } }
node /^missing/ { file { "${facts['stage_root']}/nothing": source => 'puppet:///modules/site/nothing' } }
node /^wrong/ { user { 'bob': password => 'has:colon' } }
node default { notify { 'plain': } }
