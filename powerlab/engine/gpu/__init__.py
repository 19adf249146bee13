"""The engine on GPUs, by Vulkan: the same graphs, lowered to compute kernels that are recorded once."""
