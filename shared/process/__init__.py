"""What every long-running program needs: logs, daemons, supervision of tasks."""
