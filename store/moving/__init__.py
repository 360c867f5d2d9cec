"""Moving all data of a store from one database to another."""
