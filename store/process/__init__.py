"""The store as a process: by itself, or as a child of a master."""
