"""The base of every long-running program: logs, daemons, supervision of tasks."""
