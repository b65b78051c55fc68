//! The emulated `libcuda.so.1`.
