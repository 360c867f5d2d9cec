"""From the checked tree to Python: the code of templates."""
