"""From the checked tree to Python: the code of templates, and of functions in Ruby."""
