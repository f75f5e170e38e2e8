// SPDX-License-Identifier: Apache-2.0
// WarpHadamard128: the 128-point rotation of an EXL3 linear by one warp, with the bits of
// engine/backend/cpu/ref/hadamard.h: butterflies (a + b, a - b) of strides 1, 2, 4, ..., 64, then
// one multiplication by fp32(1/sqrt(128)).
#ifndef HALLMARK_KERNELS_EXL3_HADAMARD_CUH_
#define HALLMARK_KERNELS_EXL3_HADAMARD_CUH_

namespace hallmark {

// Lane l holds elements 4 l .. 4 l + 3: strides 1 and 2 stay in the lane, stride 4 m goes to lane
// l ^ m.
__device__ __forceinline__ void WarpHadamard128(float (&v)[4], int lane) {
  const float a = v[0] + v[1];
  const float b = v[0] - v[1];
  const float c = v[2] + v[3];
  const float d = v[2] - v[3];
  v[0] = a + c;
  v[1] = b + d;
  v[2] = a - c;
  v[3] = b - d;
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    const bool upper = (lane & mask) != 0;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, v[e], mask);
      v[e] = upper ? other - v[e] : v[e] + other;
    }
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) v[e] *= 0.088388347648f;
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_HADAMARD_CUH_
