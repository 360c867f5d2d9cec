# Every node gets a message of the day; $demo_root is a fact that the demo sets, so that nothing else is touched.
node default {
  class { 'motd':
    root   => $facts['demo_root'],
    people => ['Chikamatsu', 'Takemoto'],
  }

  # The data name a DNS provider: a zone is kept there, by types and providers in Python that come with the module.
  $provider = lookup('dns_provider', Optional[Hash[String, String]], 'first', undef)
  if $provider {
    $credentials = "${facts['demo_root']}/dns.json"

    class { 'dns':
      credentials => $credentials,
    }

    # The zone and its records require this file without a word here: their types say so.
    file { $credentials:
      mode    => '0600',
      content => Sensitive("{\"url\": \"${provider['url']}\", \"token\": \"${provider['token']}\"}\n"),
    }
  }
}
