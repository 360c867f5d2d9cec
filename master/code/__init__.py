"""Code that several masters share: rows say which version of an environment counts, and which one each run uses."""
