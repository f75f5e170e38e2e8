// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/broken_checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "conformance/validate/checks.h"
#include "conformance/validate/structure.h"

namespace hallmark {
namespace {

class Scratch {
 public:
  Scratch() : path_(testing::TempDir() + "hallmark_validate." + std::to_string(::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += "\n  " + finding.check + ": " + finding.error.ToString();
  }
  return text;
}

void ExpectFinding(const Finding& finding, const Expected& expected, const std::string& folder) {
  SCOPED_TRACE(expected.check);
  EXPECT_EQ(finding.check, expected.check);
  EXPECT_EQ(finding.clause, ClauseOf(finding.severity));
  EXPECT_EQ(CodeName(finding.error.code), CodeName(expected.code));
  EXPECT_EQ(finding.error.where.file,
            expected.file.empty() ? folder : folder + "/" + expected.file);
  EXPECT_EQ(finding.error.where.pointer, expected.pointer);
  EXPECT_EQ(finding.error.where.tensor, expected.tensor);
  if (expected.byte) {
    EXPECT_EQ(finding.error.where.byte, expected.byte);
  }
  EXPECT_FALSE(finding.error.message.empty());
  EXPECT_FALSE(finding.action.empty());
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BrokenCheckpoint& broken) {
  return out << broken.name;
}

std::string ScratchFolder() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "." + test.name();
  std::replace(name.begin(), name.end(), '/', '_');
  static const Scratch scratch;
  return scratch.path() + "/" + name;
}

void ExpectFound(const BrokenCheckpoint& broken) {
  const std::string folder = ScratchFolder();
  const std::string drafter = folder + ".drafter";
  CheckpointCopy copy = broken.drafter ? CheckpointCopy::Drafter() : CheckpointCopy::Complete();
  if (broken.sharded) copy.Shard();
  if (broken.plant) broken.plant(copy);
  StructureOptions options{.folder = folder};
  if (broken.drafter) {
    CheckpointCopy::Complete().Write(folder);
    options.drafter = drafter;
  }
  const std::string& faulty = broken.drafter ? drafter : folder;
  copy.Write(faulty);
  if (broken.edit) broken.edit(faulty);

  const auto report = ValidateStructure(options, {});
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->step, "structure");
  std::vector<Finding> findings = report->findings;
  const bool grave = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity != Severity::kNote;
  });
  if (grave) {
    std::erase_if(findings, [](const Finding& f) { return f.severity == Severity::kNote; });
  }
  SCOPED_TRACE(Told(findings));
  ASSERT_EQ(findings.size(), broken.expected.size());
  for (size_t i = 0; i < findings.size(); ++i) {
    ExpectFinding(findings[i], broken.expected[i], faulty);
  }
}

}  // namespace hallmark
