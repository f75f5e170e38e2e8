// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/pointer_tables.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/backend/cuda/fake_cuda.h"

namespace hallmark {
namespace {

class PointerTablesTest : public testing::Test, protected FakeCuda {
 protected:
  void TearDown() override { EXPECT_EQ(Close(), Problems{}); }
};

const void* Address(uintptr_t value) { return reinterpret_cast<const void*>(value); }

std::vector<const void*> Fetch(CudaExecution& execution, const void* table, size_t count) {
  std::vector<const void*> host(count);
  EXPECT_TRUE(execution.Download(host.data(), table, count * sizeof(void*)).has_value());
  return host;
}

TEST_F(PointerTablesTest, AListThatDidNotChangeIsNotSentAgain) {
  CudaExecution& execution = Open();
  std::vector<const void*> list = {Address(0x1000), Address(0x5000), Address(0x3000)};
  void* table = *execution.tables().Place(list);
  EXPECT_EQ(Fetch(execution, table, 3), list);
  device_.ForgetCalls();
  EXPECT_EQ(*execution.tables().Place(list), table);
  EXPECT_EQ(*execution.tables().Place(std::span<const void* const>(list).first(2)), table);
  EXPECT_EQ(Count(CudaCallKind::kCopyToDevice), 0);
}

TEST_F(PointerTablesTest, AListThatChangedOrGrewIsSent) {
  CudaExecution& execution = Open();
  std::vector<const void*> list = {Address(0x1000), Address(0x5000)};
  ASSERT_TRUE(execution.tables().Place(list).has_value());
  list[1] = Address(0x7000);  // a page that was replaced by a copy
  EXPECT_EQ(Fetch(execution, *execution.tables().Place(list), 2), list);
  for (uintptr_t page = 0; page < 100; ++page) {
    list.push_back(Address(0x9000 + page));
    ASSERT_EQ(Fetch(execution, *execution.tables().Place(list), list.size()), list);
  }
  const std::vector<const void*> other = {Address(0x2000), Address(0x5000)};
  const void* table = *execution.tables().Place(other);
  EXPECT_NE(table, *execution.tables().Place(list));
  EXPECT_EQ(Fetch(execution, table, 2), other);
}

TEST_F(PointerTablesTest, ManyListsAreBounded) {
  CudaExecution& execution = Open();
  const size_t before = execution.arena().bytes_used();
  for (uintptr_t i = 1; i <= 3 * PointerTables::kMaxTables; ++i) {
    const std::vector<const void*> list = {Address(i * 256)};
    const void* table = *execution.tables().Place(list);
    if (i % 500 == 0) {
      EXPECT_EQ(Fetch(execution, table, 1), list);
    }
  }
  EXPECT_LE(execution.arena().bytes_used() - before, 2 * sizeof(void*) * PointerTables::kMaxTables);
}

// Memory that runs out between two lists leaves none that claims to be there.
TEST_F(PointerTablesTest, AListThatCouldNotBePlacedIsNotKnown) {
  CudaExecution& execution = Open();
  const std::vector<const void*> list(200'000, Address(0x1000));
  device_.allocations_left = 0;
  EXPECT_EQ(execution.tables().Place(list).error().code, Code::kResource);
  EXPECT_EQ(Fetch(execution, *execution.tables().Place(list), list.size()), list);
}

}  // namespace
}  // namespace hallmark
