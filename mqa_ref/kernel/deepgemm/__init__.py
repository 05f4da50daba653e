"""DeepGEMM's paged MQA logits kernels (CUDA C++, SM90 and SM100) as kernels under test.

Their headers are those of the PyPI distribution ``sgl-deep-gemm`` 0.1.5, of which nothing is imported; nvcc from PyPI
compiles them; the launch is described as data, so that the emulator and a GPU can run it.
"""
