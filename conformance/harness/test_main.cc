// SPDX-License-Identifier: Apache-2.0
// The main of every suite. GoogleTest exits 0 on a skip and on a run of no test; here both are red.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests)) return code;
  const testing::UnitTest& run = *testing::UnitTest::GetInstance();
  if (run.skipped_test_count() > 0) {
    std::fprintf(stderr, "%d skipped: a skip is a failure here\n", run.skipped_test_count());
    return 1;
  }
  if (run.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test ran: an empty suite is a failure here\n");
    return 1;
  }
  return code;
}
