"""Programs run as processes of their own; nothing imports them."""
