exit! 1
