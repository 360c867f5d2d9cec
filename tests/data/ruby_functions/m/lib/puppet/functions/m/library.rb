require 'json'
require 'digest'
require 'base64'

Puppet::Functions.create_function(:'m::library') do
  dispatch :library do
    param 'Any', :value
  end

  def library(value)
    kind = value.is_a?(Hash) ? Hash : Array
    text = value.to_json
    {
      'class'  => value.class.to_s,
      'kind'   => kind.to_s,
      'json'   => text,
      'sha'    => Digest::SHA256.hexdigest(text),
      'md5'    => Base64.strict_encode64(Digest::MD5.digest(text)),
      'url'    => ERB::Util.url_encode(value),
      'escape' => CGI.escape(text),
      'named'  => '%{what}: %{text}' % { what: kind, text: value },
      'found'  => text =~ %r{"(a|b)"}i,
    }
  end
end
