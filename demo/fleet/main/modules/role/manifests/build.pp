# A machine that builds software.
class role::build {
  include profile::base
  include profile::build
}
