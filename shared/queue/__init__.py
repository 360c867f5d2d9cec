"""A queue of payloads on the disk, which survives its process."""
