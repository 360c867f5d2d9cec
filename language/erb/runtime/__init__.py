"""What translated templates call while they run: Ruby's methods on Ruby's values."""
