"""Who asks, and what they may do: the same answer for the API and for the dashboards. Frameworks stay outside."""
