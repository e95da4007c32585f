"""One training in several processes: ranks that learn together, and actors that collect for a learner."""
