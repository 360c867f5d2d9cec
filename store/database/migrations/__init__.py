"""How the tables of older versions of the store become those of today: Alembic's scripts, one file a step."""
