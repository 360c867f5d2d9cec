from tests.support.ca_site import ca_database, database_site, empty_site, new_key, pem, site

__all__ = ["ca_database", "database_site", "empty_site", "new_key", "pem", "site"]
