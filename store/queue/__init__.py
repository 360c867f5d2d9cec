"""The queue of accepted commands on the disk, and its processor."""
