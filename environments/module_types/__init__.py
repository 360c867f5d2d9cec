"""The resource types that modules bring: in Python, in Ruby, or generated."""
