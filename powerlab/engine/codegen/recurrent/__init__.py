"""Code generation for LSTM, GRU and RNN: fused LSTM in :mod:`.cells`, everything else in :mod:`.general`."""
