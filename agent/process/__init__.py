"""The agent as a process: its daemon, its environment, its commands to an administrator."""
