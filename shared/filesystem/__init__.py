"""Files: safe access, metadata, checksums, the filebucket's store."""
