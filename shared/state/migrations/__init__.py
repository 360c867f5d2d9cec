"""The upgrade of the tables of older versions of the masters' state: Alembic's scripts, one file a step."""
