class site::virtuals {
  @notify { ['v one', 'v two']: tag => 'wanted' }
  @notify { 'v three': }
  @site::thing { 'virtual thing': size => 2 }
  Notify <| tag == 'wanted' |>
  realize(Site::Thing['virtual thing'])
  @@notify { 'exported and collected here': message => 'mine' }
  Notify <<| message == 'mine' |>>
  @@notify { 'exported and realized': message => 'too' }
  realize Notify['exported and realized']
  Notify <| title == 'nobody' |>
}
