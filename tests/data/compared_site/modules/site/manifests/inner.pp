class site::inner { notify { 'inner': audit => all } }
