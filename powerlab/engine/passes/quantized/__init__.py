"""Passes over quantized networks: operators between DequantizeLinear and QuantizeLinear compute with bytes."""
