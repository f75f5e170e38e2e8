// SPDX-License-Identifier: Apache-2.0
// The main of every suite. GoogleTest exits 0 on a skip and on a run of no test; here both are red.
// Properties draw from a fixed seed unless RC_PARAMS says otherwise, so a run repeats.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace {

// Turns a skip into a failure before the result is printed: ctest takes the printed word SKIPPED
// for "not run", which stays green whatever the exit code is.
class SkipIsFailure : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Skipped()) ADD_FAILURE() << "skipped: a skip is a failure here";
  }
};

}  // namespace

int main(int argc, char** argv) {
  setenv("RC_PARAMS", "seed=20261129", /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest& run = *testing::UnitTest::GetInstance();
  run.listeners().Append(new SkipIsFailure);
  const int code = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests)) return code;
  if (run.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test ran: an empty suite is a failure here\n");
    return 1;
  }
  return code;
}
