"""The upgrade of the tables of older versions of the store: Alembic's scripts, one file a step."""
