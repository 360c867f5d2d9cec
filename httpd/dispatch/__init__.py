"""The way of a request to the application and back: identity, admission, logs."""
