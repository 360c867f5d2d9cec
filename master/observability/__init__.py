"""What a master counts, measures and knows of its own state, and the names of its long tasks."""
