// SPDX-License-Identifier: Apache-2.0
// What kernels write down about values out of range is told at the next download, once.
#include "engine/backend/cuda/fault_words.h"

#include <gtest/gtest.h>

#include "engine/backend/cuda/fake_cuda.h"

namespace hallmark {
namespace {

class FaultWordsTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
};

TEST_F(FaultWordsTest, AnOverflowNamesItsLayerOnce) {
  CudaExecution& execution = Open();
  ASSERT_EQ(execution.faults().AddLayer("layers.0.q"), 1);
  ASSERT_EQ(execution.faults().AddLayer("layers.0.k"), 2);
  const Buffer memory = *execution.arena().Allocate(4);
  int32_t host = 0;
  ASSERT_TRUE(execution.Download(&host, memory.data(), 4).has_value());
  *execution.faults().overflow() = 2;  // as a kernel would: the fake's memory is the host's
  const Status told = execution.Download(&host, memory.data(), 4);
  ASSERT_FALSE(told.has_value());
  EXPECT_EQ(told.error().code, Code::kOutOfRange);
  EXPECT_EQ(told.error().where.tensor, "layers.0.k");
  EXPECT_TRUE(execution.Download(&host, memory.data(), 4).has_value());
  EXPECT_TRUE(execution.Finish().has_value());
}

TEST_F(FaultWordsTest, ADraftRowIsToldByAWaitToo) {
  CudaExecution& execution = Open();
  *execution.faults().draft_row() = 3;
  EXPECT_EQ(execution.Finish().error().code, Code::kOutOfRange);
  EXPECT_TRUE(execution.Finish().has_value());
}

}  // namespace
}  // namespace hallmark
