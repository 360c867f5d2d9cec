from tests.support.ca_site import empty_site, new_key, pem, site

__all__ = ["empty_site", "new_key", "pem", "site"]
