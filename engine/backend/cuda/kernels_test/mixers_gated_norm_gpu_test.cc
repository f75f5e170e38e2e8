// SPDX-License-Identifier: Apache-2.0
// The gated norm against its scalar definition, bit for bit.
#include <gtest/gtest.h>

#include "engine/backend/cpu/ref/norm.h"
#include "engine/backend/cuda/kernels_test/device_array.h"
#include "engine/backend/cuda/kernels_test/float_data.h"
#include "kernels/mixers/gated_norm.h"

namespace hallmark {
namespace {

constexpr float kEps = 1e-6f;

void ExpectGatedNorm(int64_t heads, int64_t dim) {
  SCOPED_TRACE(testing::Message() << heads << " heads of " << dim);
  const std::vector<float> o = HardFloats(heads * dim, heads, heads % 2 == 0 ? 1e10f : 3.0f);
  const std::vector<float> z = HardFloats(heads * dim, heads + 1, 50.0f);
  const std::vector<float> weight = RandomFloats(dim, 7);
  std::vector<float> expected(o.size());
  for (int64_t i = 0; i < heads * dim; i += dim) {
    RefGatedNorm(o.data() + i, z.data() + i, weight.data(), dim, kEps, expected.data() + i);
  }
  const DeviceArray<float> in(o), gate(z), w(weight), out(o.size());
  ASSERT_EQ(
      LaunchGatedNorm(in.data(), gate.data(), w.data(), heads, dim, kEps, out.data(), nullptr),
      cudaSuccess);
  ASSERT_EQ(BitDifference(expected, out.Download()), "");
  ASSERT_EQ(LaunchGatedNorm(in.data(), gate.data(), w.data(), heads, dim, kEps, in.data(), nullptr),
            cudaSuccess);
  ASSERT_EQ(BitDifference(expected, in.Download()), "");
}

TEST(GatedNormGpu, HasTheBitsOfTheDefinition) {
  for (const int64_t heads : {1, 2, 7, 8, 9, 48, 49, 48 * 17, 48 * 128})
    ExpectGatedNorm(heads, 128);
  for (const int64_t dim : {1, 17, 100, 129, 256, 300}) ExpectGatedNorm(5, dim);
  EXPECT_EQ(LaunchGatedNorm(nullptr, nullptr, nullptr, 1, 0, kEps, nullptr, nullptr),
            cudaErrorInvalidValue);
}

}  // namespace
}  // namespace hallmark
