// SPDX-License-Identifier: Apache-2.0
#include "receipts/emit/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace hallmark {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("atomic_file_test." + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const char* name) const { return (folder_ / name).string(); }
  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string Read(const char* name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(AtomicFile, WritesAndReplaces) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "first").has_value());
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "second").has_value());
  EXPECT_EQ(Read("a"), "second");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(AtomicFile, AnErrorOfTheWriterLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").has_value());
  const Status status = WriteFileAtomically(Path("a"), [](const ByteSink& sink) -> Status {
    TRY(sink(std::as_bytes(std::span("half", 4))));
    return Fail(Code::kResource, "no more");
  });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kResource);
  EXPECT_EQ(Read("a"), "old");
  EXPECT_EQ(Entries(), 1u);
}

// A limit on the size of files stands for a disk that is full.
TEST_F(AtomicFile, AFullDiskLeavesNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = WriteFileAtomically(Path("a"), std::string(5000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_EQ(status.error().where.file, Path("a"));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(AtomicFile, RefusesAFolderAndAFolderThatIsNotThere) {
  EXPECT_EQ(WriteFileAtomically(folder_.string(), "x").error().code, Code::kIo);
  EXPECT_EQ(WriteFileAtomically(Path("no/such/file"), "x").error().code, Code::kIo);
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(AtomicFile, WritesThroughALinkAndKeepsIt) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").has_value());
  fs::create_symlink("a", Path("link"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read("a"), "new");
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(AtomicFile, LeavesPipesDevicesAndStrayLinksWhereTheyAre) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/full", Path("device"));
  fs::create_symlink("nowhere", Path("stray"));
  fs::create_symlink("loop", Path("loop"));
  for (const char* name : {"pipe", "device", "stray", "loop"}) {
    const Status status = WriteFileAtomically(Path(name), "x");
    ASSERT_FALSE(status.has_value()) << name;
    EXPECT_EQ(status.error().code, Code::kIo) << name;
    EXPECT_EQ(status.error().where.file, Path(name));
  }
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(fs::is_symlink(Path("stray")));
  EXPECT_EQ(Entries(), 4u);
}

}  // namespace
}  // namespace hallmark
