// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/element.cuh"
#include "kernels/rows/embed.h"

namespace hallmark {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kVectorBytes = 16;

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    EmbedKernel(const Element* table, int64_t cols, const int32_t* ids, float* out) {
  const Element* row = table + ids[blockIdx.x] * cols;
  float* to = out + blockIdx.x * cols;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) to[i] = row[i].Widen();
}

// The same by 16 bytes a load: over a bus a row then takes an eighth of the requests.
template <typename Element>
__global__ void __launch_bounds__(kThreads)
    EmbedWideKernel(const Element* table, int64_t cols, const int32_t* ids, float* out) {
  constexpr int kPer = kVectorBytes / sizeof(Element);
  struct alignas(kVectorBytes) Pack {
    Element elements[kPer];
  };
  const Pack* row = reinterpret_cast<const Pack*>(table + ids[blockIdx.x] * cols);
  float4* to = reinterpret_cast<float4*>(out + blockIdx.x * cols);
  for (int64_t i = threadIdx.x; i < cols / kPer; i += kThreads) {
    const Pack pack = row[i];
#pragma unroll
    for (int j = 0; j < kPer; j += 4) {
      to[(i * kPer + j) / 4] =
          make_float4(pack.elements[j].Widen(), pack.elements[j + 1].Widen(),
                      pack.elements[j + 2].Widen(), pack.elements[j + 3].Widen());
    }
  }
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kVectorBytes == 0;
}

__global__ void __launch_bounds__(kThreads)
    CopyColumnsKernel(const float* x, int64_t cols, int64_t column, int64_t out_cols, float* out) {
  const float* row = x + blockIdx.x * cols;
  float* to = out + blockIdx.x * out_cols + column;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) to[i] = row[i];
}

}  // namespace

cudaError_t LaunchEmbed(const void* table, ElementType type, int64_t cols, const int32_t* ids,
                        int64_t rows, float* out, cudaStream_t stream) {
  if (rows < 0 || rows > INT32_MAX || cols < 1) return cudaErrorInvalidValue;
  return WithElements(type, table, [&](const auto* elements) {
    if (rows == 0) return cudaSuccess;
    const auto blocks = static_cast<unsigned>(rows);
    const int64_t row_bytes = cols * static_cast<int64_t>(sizeof(*elements));
    if (row_bytes % kVectorBytes == 0 && IsAligned(table) && IsAligned(out)) {
      EmbedWideKernel<<<blocks, kThreads, 0, stream>>>(elements, cols, ids, out);
    } else {
      EmbedKernel<<<blocks, kThreads, 0, stream>>>(elements, cols, ids, out);
    }
    return cudaGetLastError();
  });
}

cudaError_t LaunchCopyColumns(const float* x, int64_t rows, int64_t cols, int64_t column,
                              int64_t out_cols, float* out, cudaStream_t stream) {
  if (rows < 0 || rows > INT32_MAX || cols < 0 || column < 0 || column + cols > out_cols) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0 || cols == 0) return cudaSuccess;
  CopyColumnsKernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, cols, column, out_cols,
                                                                          out);
  return cudaGetLastError();
}

}  // namespace hallmark
