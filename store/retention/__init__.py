"""What the store forgets, and when: nodes of which nothing is heard, old reports, and rows that no node uses any more."""
