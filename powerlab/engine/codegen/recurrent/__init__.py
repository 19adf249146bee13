"""Code generation for LSTM, GRU and RNN: the fused LSTM and the general recurrence."""
