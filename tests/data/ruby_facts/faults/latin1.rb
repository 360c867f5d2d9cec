# encoding: iso-8859-1

Facter.add(:in_latin1) { setcode { "Größe" } }
