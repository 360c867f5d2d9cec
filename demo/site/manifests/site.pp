# Every node gets a message of the day; $demo_root is a fact that the demo sets, so that nothing else is touched.
node default {
  class { 'motd':
    root   => $facts['demo_root'],
    people => ['Chikamatsu', 'Takemoto'],
  }
}
