// SPDX-License-Identifier: Apache-2.0
#include "engine/base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace hallmark {
namespace {

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

TEST(MappedFile, ReadsBytes) {
  const std::string path = Path("mapped_file_reads");
  std::ofstream(path) << "hello";
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_EQ(file->bytes().size(), 5u);
  EXPECT_EQ(file->bytes()[1], std::byte{'e'});
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const std::string path = Path("mapped_file_empty");
  std::ofstream(path).flush();
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNotARegularFile) {
  const auto absent = MappedFile::Open(Path("mapped_file_absent"));
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().code, Code::kNotFound);
  const auto folder = MappedFile::Open(testing::TempDir());
  ASSERT_FALSE(folder.has_value());
  EXPECT_EQ(folder.error().code, Code::kUnsupported);
  const std::string fifo = Path("mapped_file_fifo");
  std::filesystem::remove(fifo);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto pipe = MappedFile::Open(fifo);
  ASSERT_FALSE(pipe.has_value());
  EXPECT_EQ(pipe.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace hallmark
