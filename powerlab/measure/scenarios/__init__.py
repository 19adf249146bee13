"""MLPerf's scenarios, one a file: how the timed part of a run is made, and what its latencies say."""
