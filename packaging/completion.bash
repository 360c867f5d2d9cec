# The package bash-completion has a file of its own for puppet: this one counts where puppet is Bunraku's, and is read when it is first needed.
if [[ /usr/bin/puppet -ef /usr/bin/bunraku-puppet ]]; then
  _bunraku_puppet_load() {
    source /usr/share/bash-completion/completions/bunraku-puppet && complete -F _bunraku_puppet puppet && return 124
  }
  complete -F _bunraku_puppet_load puppet
fi
