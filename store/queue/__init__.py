"""The queue of accepted commands on the disk, and who carries them out."""
