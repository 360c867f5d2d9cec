"""What a run records: its log for the report, and the files that the next run reads."""
