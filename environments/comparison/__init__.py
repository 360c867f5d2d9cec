"""What catalogs of one node from two states of the code differ in."""
