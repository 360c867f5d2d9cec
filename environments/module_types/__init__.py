"""The resource types of modules: in Python, in Ruby, or generated."""
