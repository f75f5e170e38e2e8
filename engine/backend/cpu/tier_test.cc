// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/tier.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace hallmark {
namespace {

// Puts the variable back when a test ends.
class CpuTierChoice : public testing::Test {
 protected:
  CpuTierChoice() {
    const char* value = std::getenv(kCpuTierVariable);
    if (value != nullptr) before_ = value;
    had_ = value != nullptr;
    unsetenv(kCpuTierVariable);
  }
  ~CpuTierChoice() override {
    if (had_) {
      setenv(kCpuTierVariable, before_.c_str(), 1);
    } else {
      unsetenv(kCpuTierVariable);
    }
  }

 private:
  std::string before_;
  bool had_ = false;
};

TEST_F(CpuTierChoice, NamesReadBack) {
  for (const CpuTier tier :
       {CpuTier::kScalar, CpuTier::kAvx2, CpuTier::kAvx512, CpuTier::kAvx512Fp16}) {
    EXPECT_EQ(ParseCpuTier(CpuTierName(tier)), tier);
  }
  EXPECT_EQ(ParseCpuTier("sse"), std::nullopt);
  EXPECT_EQ(ParseCpuTier(""), std::nullopt);
}

TEST_F(CpuTierChoice, ScalarIsAlwaysSupportedAndTheBestIsTheDefault) {
  const auto tiers = SupportedCpuTiers();
  ASSERT_FALSE(tiers.empty());
  EXPECT_EQ(tiers.front(), CpuTier::kScalar);
  EXPECT_EQ(ChooseCpuTier(std::nullopt).value(), tiers.back());
}

TEST_F(CpuTierChoice, AnOptionOverridesTheVariableAndTheVariableOverridesTheDefault) {
  setenv(kCpuTierVariable, "scalar", 1);
  EXPECT_EQ(ChooseCpuTier(std::nullopt).value(), CpuTier::kScalar);
  const CpuTier best = SupportedCpuTiers().back();
  EXPECT_EQ(ChooseCpuTier(best).value(), best);
  setenv(kCpuTierVariable, "", 1);
  EXPECT_EQ(ChooseCpuTier(std::nullopt).value(), best);
}

TEST_F(CpuTierChoice, AnUnknownWordInTheVariableIsRefusedByName) {
  setenv(kCpuTierVariable, "fast", 1);
  const auto tier = ChooseCpuTier(std::nullopt);
  ASSERT_FALSE(tier.has_value());
  EXPECT_EQ(tier.error().code, Code::kOutOfRange);
  EXPECT_EQ(tier.error().where.flag, kCpuTierVariable);
}

TEST_F(CpuTierChoice, ATierBeyondTheMachineIsUnsupported) {
  for (const CpuTier tier : {CpuTier::kAvx2, CpuTier::kAvx512, CpuTier::kAvx512Fp16}) {
    const auto chosen = ChooseCpuTier(tier);
    EXPECT_EQ(chosen.has_value(), tier <= SupportedCpuTiers().back());
    EXPECT_TRUE(chosen.has_value() || chosen.error().code == Code::kUnsupported);
  }
}

}  // namespace
}  // namespace hallmark
