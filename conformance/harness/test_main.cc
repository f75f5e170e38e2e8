// SPDX-License-Identifier: Apache-2.0
// The main of every suite. GoogleTest exits 0 on a skip and on a run of no test; here both are red.
// Properties draw from a fixed seed unless RC_PARAMS says otherwise, so a run repeats. Each run has
// a testing::TempDir() of its own, gone afterwards, so that suites may run side by side.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace {

// Turns a skip into a failure before the result is printed: ctest takes the printed word SKIPPED
// for "not run", which stays green whatever the exit code is.
class SkipIsFailure : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (info.result()->Skipped()) ADD_FAILURE() << "skipped: a skip is a failure here";
  }
};

// Points testing::TempDir() to a new folder, and removes that.
class OwnTempDir {
 public:
  OwnTempDir() : path_(testing::TempDir() + "hallmark.XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::exit(1);
    }
    setenv("TEST_TMPDIR", (path_ + "/").c_str(), /*overwrite=*/1);
  }
  ~OwnTempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  setenv("RC_PARAMS", "seed=20261129", /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest& run = *testing::UnitTest::GetInstance();
  run.listeners().Append(new SkipIsFailure);
  const OwnTempDir temporary;
  const int code = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests)) return code;
  if (run.test_to_run_count() == 0) {
    std::fprintf(stderr, "no test ran: an empty suite is a failure here\n");
    return 1;
  }
  return code;
}
