// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

#include "kernels/exl3/exl3_linear.h"
#include "kernels/exl3/hadamard.cuh"

namespace hallmark {
namespace {

constexpr int kRotateWarps = 8;

struct Exl3Rotations {
  Exl3Rotation of[kExl3MaxRotations];
};

// A warp takes one row's block of 128 inputs; a block of threads the 8 rows of a group, so that its
// stores fill whole fragments.
__global__ void __launch_bounds__(32 * kRotateWarps)
    Exl3RotateKernel(const float* x, int rows, int64_t in_features, int64_t k_tiles,
                     const __grid_constant__ Exl3Rotations rotations, int32_t* overflow) {
  const Exl3Rotation& rotation = rotations.of[blockIdx.z];
  const uint16_t* suh = rotation.suh;
  const int32_t layer_id = rotation.layer_id;
  uint32_t* xh = static_cast<uint32_t*>(rotation.xh);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int g = static_cast<int>(threadIdx.x) / 32;
  const int64_t group = blockIdx.y;
  const int64_t row = group * 8 + g;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * 128 + 4 * lane;
  float v[4] = {};
  if (row < rows) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float scale = __half2float(__ushort_as_half(suh[first + e]));
      v[e] = (first + e < in_features ? x[row * in_features + first + e] : 0.0f) * scale;
    }
  }
  WarpHadamard128(v, lane);
  uint16_t half[4];
  bool finite = true;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    half[e] = __half_as_ushort(__float2half_rn(v[e]));
    finite &= (half[e] & 0x7C00u) != 0x7C00u;
  }
  if (!finite) {
    // The smallest id that was recorded wins: what is reported does not depend on timing.
    int32_t seen = *reinterpret_cast<volatile int32_t*>(overflow);
    while (seen == 0 || layer_id < seen) {
      const int32_t before = atomicCAS(overflow, seen, layer_id);
      if (before == seen) break;
      seen = before;
    }
  }
  // Inputs 4 lane .. 4 lane + 3 of the block are two words of its k-tile lane / 4: fragment lanes
  // 4 g + t and 4 g + t + 1, register b of each.
  const int64_t k_tile = static_cast<int64_t>(blockIdx.x) * 8 + lane / 4;
  const int in_tile = lane % 4 * 4;
  const int t = in_tile % 8 / 2;
  const int b = in_tile / 8;
  uint32_t* to = xh + ((group * k_tiles + k_tile) * 32 + 4 * g + t) * 2 + b;
  to[0] = half[0] | static_cast<uint32_t>(half[1]) << 16;
  to[2] = half[2] | static_cast<uint32_t>(half[3]) << 16;
}

}  // namespace

cudaError_t LaunchExl3Rotations(const float* x, int64_t rows, int64_t in_features, int64_t k,
                                std::span<const Exl3Rotation> rotations, int32_t* overflow,
                                cudaStream_t stream) {
  if (rows == 0 || rotations.empty()) return cudaSuccess;
  if (rows < 0 || k <= 0 || k % 128 != 0 || in_features < 1 || in_features > k ||
      rotations.size() > kExl3MaxRotations) {
    return cudaErrorInvalidValue;
  }
  Exl3Rotations args = {};
  for (size_t i = 0; i < rotations.size(); ++i) {
    if (rotations[i].layer_id < 1) return cudaErrorInvalidValue;
    args.of[i] = rotations[i];
  }
  const dim3 grid(static_cast<unsigned>(k / 128), static_cast<unsigned>((rows + 7) / 8),
                  static_cast<unsigned>(rotations.size()));
  Exl3RotateKernel<<<grid, 32 * kRotateWarps, 0, stream>>>(x, static_cast<int>(rows), in_features,
                                                           k / 16, args, overflow);
  return cudaGetLastError();
}

}  // namespace hallmark
