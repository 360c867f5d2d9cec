"""The files that Hiera reads: configurations, data files and keys for encrypted values."""
