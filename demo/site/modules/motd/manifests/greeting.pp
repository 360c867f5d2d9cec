# One person's greeting.
define motd::greeting (String[1] $path) {
  file { $path:
    content => "Good evening, ${title}. The stage is ${facts['demo_stage']}.\n",
  }
}
