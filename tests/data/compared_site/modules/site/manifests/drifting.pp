class site::drifting {
  $file = "${facts['stage_root']}/drifting"
  file { $file: content => "as it should be\n" }
  exec { 'drift': command => "/bin/sh -c 'echo more >> ${file}'", require => File[$file], onlyif => "/usr/bin/test -e ${file}" }
  exec { 'tries': command => '/bin/sh -c "echo out; echo err >&2; exit 3"', returns => [3, 4], logoutput => true }
  exec { 'unless': command => '/bin/false', unless => '/bin/true' }
}
