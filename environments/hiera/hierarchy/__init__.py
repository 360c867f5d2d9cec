"""One hiera.yaml: its entries, and for one compilation their levels, locations and values."""
