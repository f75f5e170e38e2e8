// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace hallmark {
namespace {

class Paths : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"HALLMARK_GOLDEN", "HALLMARK_MODEL", "HALLMARK_DRAFTER"}) {
      unsetenv(name);
    }
  }
  void SetUp() override { TearDown(); }
};

TEST_F(Paths, GoldenFolderHoldsTheModels) {
  EXPECT_TRUE(std::filesystem::exists(GoldenPath("models/scribe-11m-exl3/config.json")));
  EXPECT_TRUE(std::filesystem::exists(GoldenPath("models/prism-exl3/model.safetensors")));
}

TEST_F(Paths, EnvironmentMovesTheGoldenFolder) {
  setenv("HALLMARK_GOLDEN", "elsewhere", 1);
  EXPECT_EQ(GoldenPath("a/b"), "elsewhere/a/b");
  EXPECT_EQ(GoldenPath(""), "elsewhere");
  EXPECT_EQ(ModelUnderTest(), "elsewhere/models/scribe-11m-exl3");
}

TEST_F(Paths, VendorNamesTheModelAndDrafter) {
  EXPECT_EQ(ModelUnderTest(), GoldenPath("models/scribe-11m-exl3"));
  EXPECT_EQ(DrafterUnderTest(), GoldenPath("models/scribe-11m-dflash2"));
  setenv("HALLMARK_MODEL", "m", 1);
  EXPECT_EQ(DrafterUnderTest(), "");
  setenv("HALLMARK_DRAFTER", "d", 1);
  EXPECT_EQ(ModelUnderTest(), "m");
  EXPECT_EQ(DrafterUnderTest(), "d");
}

}  // namespace
}  // namespace hallmark
