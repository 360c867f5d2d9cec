"""Files of environments: where the compiler reads them from, and which of them manifests may reach."""
