"""LSTM, GRU and RNN: what inputs add to the gates is one matrix product over all steps; then step by step."""
