alias ll='ls -l'
