"""Networks in low precision: calibrated, quantized, compared with what they were.

A quantized network is a graph of ONNX's operators with QuantizeLinear and DequantizeLinear around those that are to
compute with integers. Start at :mod:`.quantize`.
"""
