"""What a server bears: a thousand agents, samples by the hundred thousand a second, and Prometheus beside it."""
