"""The records of a run: its log for the report, and the files that the next run reads."""
