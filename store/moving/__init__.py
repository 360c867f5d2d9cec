"""Moving all that a store keeps from one database to another."""
