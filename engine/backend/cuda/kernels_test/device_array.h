// SPDX-License-Identifier: Apache-2.0
// DeviceArray<T>: device memory of a test, between two guard bands. Inputs are uploaded; an output
// starts as NaN bytes, so that an element nobody wrote cannot pass for a result, and its bands are
// checked when it is downloaded. A written band and any CUDA error end the process.
#ifndef HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_DEVICE_ARRAY_H_
#define HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_DEVICE_ARRAY_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace hallmark {

// Ends the process: after a CUDA error nothing that follows means anything.
inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::abort();
}

template <typename T>
class DeviceArray {
 public:
  // An output: every byte 0xFF, which is a NaN in fp16, bf16, fp32 and fp8 alike.
  explicit DeviceArray(size_t count) : count_(count) {
    void* raw = nullptr;
    CheckCuda(cudaMalloc(&raw, bytes() + 2 * kBand), "cudaMalloc");
    raw_ = static_cast<unsigned char*>(raw);
    CheckCuda(cudaMemset(raw_, kSentinel, kBand), "cudaMemset");
    CheckCuda(cudaMemset(raw_ + kBand, 0xFF, bytes()), "cudaMemset");
    CheckCuda(cudaMemset(raw_ + kBand + bytes(), kSentinel, kBand), "cudaMemset");
  }
  explicit DeviceArray(std::span<const T> host) : DeviceArray(host.size()) {
    CheckCuda(cudaMemcpy(data(), host.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(std::span<const T>(host)) {}
  ~DeviceArray() { cudaFree(raw_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return reinterpret_cast<T*>(raw_ + kBand); }
  size_t size() const { return count_; }

  // Waits for the device.
  std::vector<T> Download() const {
    CheckCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<T> host(count_);
    CheckCuda(cudaMemcpy(host.data(), data(), bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::vector<unsigned char> band(2 * kBand);
    CheckCuda(cudaMemcpy(band.data(), raw_, kBand, cudaMemcpyDeviceToHost), "cudaMemcpy");
    CheckCuda(
        cudaMemcpy(band.data() + kBand, raw_ + kBand + bytes(), kBand, cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    for (size_t i = 0; i < band.size(); ++i) {
      if (band[i] == kSentinel) continue;
      std::fprintf(stderr, "a byte %s the array was written\n", i < kBand ? "before" : "after");
      std::abort();
    }
    return host;
  }

 private:
  // A multiple of 256: data() keeps the alignment of cudaMalloc.
  static constexpr size_t kBand = 1024;
  static constexpr unsigned char kSentinel = 0xA5;
  size_t bytes() const { return count_ * sizeof(T); }

  size_t count_;
  unsigned char* raw_ = nullptr;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CUDA_KERNELS_TEST_DEVICE_ARRAY_H_
