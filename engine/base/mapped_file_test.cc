// SPDX-License-Identifier: Apache-2.0
#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace hallmark {
namespace {

const size_t kPage = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

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

TEST(MappedFile, RefusesSocketsAndDevices) {
  const std::string name = "/dev/zero";
  EXPECT_EQ(MappedFile::Open(name).error().code, Code::kUnsupported);
  const std::string path = Path("mapped_file_socket");
  std::filesystem::remove(path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(socket, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(MappedFile::Open(path).error().code, Code::kUnsupported);
  ::close(socket);
}

// A file of whole pages of the letter x.
std::string Pages(const std::string& name, size_t pages) {
  const std::string path = Path(name);
  std::ofstream(path, std::ios::binary) << std::string(pages * kPage, 'x');
  return path;
}

TEST(MappedFile, AFileThatShrinksIsAnErrorAndNoSignal) {
  const std::string path = Pages("mapped_file_shrinks", 4);
  const auto other = MappedFile::Open(Pages("mapped_file_stays", 4));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.has_value() && other.has_value());
  EXPECT_TRUE(file->Intact().has_value());
  std::filesystem::resize_file(path, kPage + 7);
  // The rest of the second page is zeros without a signal, the third is a signal.
  EXPECT_EQ(file->bytes()[kPage + 6], std::byte{'x'});
  EXPECT_EQ(file->bytes()[kPage + 7], std::byte{0});
  const Status before = file->Intact();
  ASSERT_FALSE(before.has_value());
  EXPECT_EQ(before.error().code, Code::kIo);
  EXPECT_TRUE(before.error().where == (Locator{.file = path, .byte = kPage + 7}));
  EXPECT_EQ(file->bytes()[3 * kPage + 5], std::byte{0});
  EXPECT_EQ(file->bytes()[2 * kPage + 5], std::byte{0});
  EXPECT_EQ(file->bytes()[0], std::byte{'x'});
  EXPECT_EQ(file->Intact().error().where.byte, kPage + 7);
  EXPECT_TRUE(CheckIntact(file->bytes().first(kPage + 7), path).has_value());
  EXPECT_EQ(CheckIntact(file->bytes().first(kPage + 8), path).error().where.byte, kPage + 7);
  EXPECT_TRUE(other->Intact().has_value());
  EXPECT_TRUE(CheckIntact(other->bytes(), other->path()).has_value());
}

// What was lost stays lost, though the file has its old size again: zeros were read.
TEST(MappedFile, AReadThatFailedIsRemembered) {
  const std::string path = Pages("mapped_file_remembers", 4);
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.has_value());
  std::filesystem::resize_file(path, kPage);
  EXPECT_EQ(file->bytes()[2 * kPage + 9], std::byte{0});
  std::ofstream(path, std::ios::binary) << std::string(4 * kPage, 'x');
  const Status status = file->Intact();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().where.byte, 2 * kPage + 9);
  EXPECT_TRUE(CheckIntact(file->bytes().first(2 * kPage), path).has_value());
  EXPECT_FALSE(CheckIntact(file->bytes().first(2 * kPage + 1), path).has_value());
}

TEST(MappedFile, ManyThreadsMayMeetOneLoss) {
  const std::string path = Pages("mapped_file_threads", 64);
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.has_value());
  std::filesystem::resize_file(path, 0);
  std::vector<std::thread> threads;
  std::atomic<size_t> sum{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (const std::byte byte : file->bytes()) sum += static_cast<size_t>(byte);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 0u);
  EXPECT_EQ(file->Intact().error().where.byte, 0u);
}

// A closed map's place may be another's: what happens there is no longer ours.
TEST(MappedFile, AnotherMapInTheOldPlaceStartsIntact) {
  const std::string path = Pages("mapped_file_again", 2);
  {
    const auto file = MappedFile::Open(path);
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(file->bytes()[kPage], std::byte{0});
    EXPECT_FALSE(file->Intact().has_value());
  }
  Pages("mapped_file_again", 2);
  const auto file = MappedFile::Open(path);
  EXPECT_TRUE(file->Intact().has_value());
  EXPECT_EQ(file->bytes()[kPage], std::byte{'x'});
}

// In a process of its own: without the guard it dies of the signal.
void ReadWhatShrank() {
  const std::string path = Pages("mapped_file_survives", 3);
  const auto file = MappedFile::Open(path);
  std::filesystem::resize_file(path, kPage);
  const bool zero = file->bytes()[2 * kPage + 1] == std::byte{0};
  std::exit(zero && !file->Intact().has_value() ? 0 : 1);
}

TEST(MappedFileDeathTest, AFileThatShrinksDoesNotKillItsReader) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(ReadWhatShrank(), testing::ExitedWithCode(0), "");
}

void TouchAForeignLoss() {
  const std::string path = Pages("mapped_file_foreign", 2);
  const auto ours = MappedFile::Open(path);  // the handler is there
  const int file = ::open(path.c_str(), O_RDONLY);
  const auto* data = static_cast<const volatile char*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE, file, 0));
  std::filesystem::resize_file(path, 0);
  (void)data[kPage];
}

TEST(MappedFileDeathTest, ASignalOutsideOurMapsStaysDeadly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(TouchAForeignLoss(), "");
  const auto ours = MappedFile::Open(Pages("mapped_file_raise", 1));
  ASSERT_TRUE(ours.has_value());
  EXPECT_EXIT(::raise(SIGBUS), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace hallmark
