// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/contract.h"

#include <gtest/gtest.h>

#include <regex>

#include "engine/base/sha256.h"
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
  EXPECT_EQ(*ArithmeticIdOf("cpu"), CpuArithmeticId());
  EXPECT_EQ(ArithmeticIdOf("abacus").error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace hallmark
