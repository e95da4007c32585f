// errors.h - every CUDA call is checked: what a device refuses becomes an exception that says so.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace hl::cuda {

// Something is wrong with the device, its driver or what was asked of it.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// More envs were asked for than its memory holds.
struct OutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};

inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // it was seen: the next call is not blamed for it
  throw DeviceError(std::string("CUDA failed to ") + doing + ": " + cudaGetErrorString(status));
}

}  // namespace hl::cuda
