// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/contract.h"

#include <gtest/gtest.h>

#include <regex>

#include "engine/base/sha256.h"
#include "kernels/exl3/range_plan.h"
#include "receipts/emit/embedded.h"

namespace hallmark {
namespace {

TEST(BuildContract, IsTheDigestOfTheCommittedFile) {
  // The file is kept canonical, so its own digest is the contract's: sha256sum finds it too.
  EXPECT_EQ(BuildContract().sha256, Sha256Hex(ContractText()));
  EXPECT_GE(BuildContract().version, 1);
}

TEST(CpuArithmeticId, NamesBackendContractAndDefinition) {
  EXPECT_TRUE(std::regex_match(CpuArithmeticId(), std::regex("cpu/[0-9]+/[0-9a-f]{12}")));
  EXPECT_EQ(CpuArithmeticId().substr(CpuArithmeticId().size() - 12),
            Sha256Hex(CpuArithmeticText()).substr(0, 12));
}

TEST(ArithmeticIdOf, RefusesABackendWithoutOne) {
  EXPECT_EQ(*ArithmeticIdOf("cpu", ""), CpuArithmeticId());
  EXPECT_EQ(ArithmeticIdOf("abacus", "").error().code, Code::kUnsupported);
  EXPECT_EQ(ArithmeticIdOf("cuda", "").error().code, Code::kUnsupported);
}

TEST(CudaArithmeticId, NamesTheDeviceToo) {
  const std::string one(64, '1');
  EXPECT_TRUE(std::regex_match(CudaArithmeticId(one), std::regex("cuda/[0-9]+/[0-9a-f]{12}")));
  EXPECT_EQ(*ArithmeticIdOf("cuda", one), CudaArithmeticId(one));
  EXPECT_NE(CudaArithmeticId(one), CudaArithmeticId(std::string(64, '2')));
  EXPECT_EQ(CudaArithmeticId(one).substr(CudaArithmeticId(one).size() - 12),
            Sha256Hex(std::string(CudaArithmeticText()) + one).substr(0, 12));
}

// How inputs are cut into ranges is part of the definition, which states the plans' digest.
TEST(CudaArithmetic, StatesTheRangePlansOfTheKernels) {
  constexpr int64_t kHead = 248320;  // outputs of the family's heads
  std::string plans;
  for (int64_t k = 128; k <= 20480; k += 128) {
    for (int64_t n = 128; n <= kHead; n += n < 32768 ? 128 : kHead - 32768) {
      const Exl3RangePlan plan = Exl3RangePlanOf(k, n);
      plans += std::to_string(k) + " " + std::to_string(n) + " " + std::to_string(plan.splits) +
               " " + std::to_string(plan.warps) + "\n";
    }
  }
  EXPECT_NE(CudaArithmeticText().find("digest of all plans: " + Sha256Hex(plans)),
            std::string_view::npos)
      << "receipts/arithmetic/cuda.json must state " << Sha256Hex(plans);
}

}  // namespace
}  // namespace hallmark
