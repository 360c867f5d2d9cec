# Every machine gets the base; $demo_root is a fact that the demo sets, so that nothing else is touched.
node default {
  class { 'base':
    root => $facts['demo_root'],
  }
}
