"""The modules in the folders of a modulepath: which they are, and how they are installed, upgraded and removed."""
