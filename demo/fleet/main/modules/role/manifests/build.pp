class role::build {
  include profile::base
  include profile::build
}
