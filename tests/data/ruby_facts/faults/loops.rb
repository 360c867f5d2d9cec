Facter.add(:before_the_loop) { setcode { 'never' } }
loop { sleep 1 }
