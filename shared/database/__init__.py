"""What every database of ours needs: connections to PostgreSQL, and tables of a version."""
