"""What is called with values: signatures, operators, conversions, formats."""
