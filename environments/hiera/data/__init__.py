"""What Hiera reads from disk: configurations, data files and keys for encrypted values."""
