"""The way of a request to the application and back: who asks, whether the request is admitted, what the logs say."""
