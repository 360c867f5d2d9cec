"""The processes that compile and parse for the master, and the frames it exchanges with them."""
