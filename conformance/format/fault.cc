// SPDX-License-Identifier: Apache-2.0
#include "conformance/format/fault.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/format/checkpoint.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

// A folder of this process, removed when it ends: suites run side by side.
class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "hallmark_format." + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

Verdict Judge(const std::string& folder) {
  const auto checkpoint = Checkpoint::Open(folder);
  if (!checkpoint) return {Phase::kOpen, checkpoint.error()};
  const auto inventory = TakeInventory(*checkpoint);
  if (!inventory) return {Phase::kInventory, inventory.error()};
  const auto finite = CheckFiniteScales(*inventory);
  if (!finite) return {Phase::kValues, finite.error()};
  return {};
}

std::string TestFolder() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "." + test.name();
  std::replace(name.begin(), name.end(), '/', '_');
  static const ScratchFolder scratch;
  return scratch.path() + "/" + name;
}

void ExpectRefused(const Fault& fault) {
  const std::string folder = TestFolder();
  CheckpointWriter writer(fault.model);
  if (fault.shards > 0) writer.Shard(fault.shards);
  ASSERT_TRUE(writer.Write(folder).has_value());
  const Verdict control = Judge(folder);
  ASSERT_EQ(control.phase, Phase::kAccepted) << "control: " << control.error->ToString();

  if (fault.plant) fault.plant(writer);
  ASSERT_TRUE(writer.Write(folder).has_value());
  if (fault.folder_edit) fault.folder_edit(folder);
  const Verdict verdict = Judge(folder);
  ASSERT_TRUE(verdict.error.has_value()) << "the fault was accepted";
  const Error& error = *verdict.error;
  SCOPED_TRACE(error.ToString());
  EXPECT_EQ(verdict.phase, fault.phase);
  EXPECT_EQ(CodeName(error.code), CodeName(fault.code));
  EXPECT_EQ(error.where.file, fault.file.empty() ? folder : folder + "/" + fault.file);
  EXPECT_EQ(error.where.pointer, fault.pointer);
  EXPECT_EQ(error.where.tensor, fault.tensor);
  EXPECT_FALSE(error.message.empty());
}

}  // namespace hallmark
