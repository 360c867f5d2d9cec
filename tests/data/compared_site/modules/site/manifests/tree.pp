class site::tree {
  $root = "${facts['stage_root']}/tree"
  file { $root: ensure => directory, recurse => true, purge => true, source => 'puppet:///modules/site/tree', ignore => '*.bak' }
  file { "${root}/own": content => 'own', replace => false }
  tidy { "${facts['stage_root']}/stale": age => '0', recurse => true }
}
