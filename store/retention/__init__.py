"""The retention of data: nodes that send nothing, old reports, and rows that no node uses any more."""
