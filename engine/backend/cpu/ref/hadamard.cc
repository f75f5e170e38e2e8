// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/ref/hadamard.h"

#include "engine/base/float_types.h"

namespace hallmark {

void RefHadamard128(float* v) {
  for (int stride = 1; stride <= 64; stride *= 2) {
    for (int i = 0; i < 128; ++i) {
      if ((i & stride) != 0) continue;
      const float a = v[i];
      const float b = v[i + stride];
      v[i] = a + b;
      v[i + stride] = a - b;
    }
  }
  for (int i = 0; i < 128; ++i) v[i] *= kHadamardScale;
}

bool RefRotateInput(const float* x, int64_t in_features, const float* suh, int64_t k, float* xh) {
  for (int64_t i = 0; i < k; ++i) xh[i] = (i < in_features ? x[i] : 0.0f) * suh[i];
  bool finite = true;
  for (int64_t block = 0; block < k; block += 128) {
    RefHadamard128(xh + block);
    for (int64_t i = block; i < block + 128; ++i) {
      const uint16_t half = FloatToHalf(xh[i]);
      finite &= (half & 0x7C00u) != 0x7C00u;
      xh[i] = HalfToFloat(half);
    }
  }
  return finite;
}

void RefRotateOutput(float* sum, const float* svh, const float* bias, int64_t count, float* y) {
  RefHadamard128(sum);
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = sum[i] * svh[i];
    y[i] = bias != nullptr ? scaled + bias[i] : scaled;
  }
}

}  // namespace hallmark
