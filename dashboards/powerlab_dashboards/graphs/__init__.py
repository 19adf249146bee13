"""Pictures of networks: their nodes with what they cost, and where each stands on the page."""
