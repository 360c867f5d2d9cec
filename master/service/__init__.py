"""The master as a long-running process: its signals, tasks, metrics and health."""
