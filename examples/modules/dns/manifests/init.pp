# A zone with two records at a DNS provider.
class dns (
  String[1]            $credentials = '/etc/puppet/dns.json',
  String[1]            $zone        = 'example.com',
  String[1]            $email       = 'hostmaster@example.com',
) {
  dnszone { $zone:
    email       => $email,
    credentials => $credentials,
  }
  dnsrr {
    default:
      zone        => $zone,
      credentials => $credentials;
    dns::absolute('www', $zone):
      value => ['192.0.2.1', '192.0.2.2'];
    dns::absolute('mail', $zone):
      type  => 'MX',
      value => '10 mx.example.net.';
  }
}
