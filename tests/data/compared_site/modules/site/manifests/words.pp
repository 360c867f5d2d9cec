class site::words {
  tag 'from_the_function', 'A::Nested::Tag'
  notify { 'with blanks and "quotes" and \\ too': }
  notify { "two\nlines": message => "a\tb\r\nc\u{1f600}" }
  notify { 'größe': alias => 'size in german' }
  notify { '::colons::': tag => 'Has-Dash_and.dot' }
  notify { 'empty message': message => '' }
  notify { 'numbers': message => [1, -2, 1.5, 1e100, 9007199254740993, 0x1f, '007'] }
  notify { 'not text': message => { 'a' => undef, 'b' => true, 'c' => [[], {}] } }
  notify { "long ${'x'.map |$c| { range(1, 400) }.flatten.join($c) }": message => 'its title is long' }
  notify { 'sensitive': message => Sensitive('canary') }
  notify { "late": message => Deferred('sprintf', ['late %s', 'value']) }
  include site::words::Inner
}
class site::words::inner { notify { "${title} ${module_name} ${name}": } }
