// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/folder/packed_folder.h"
#include "fuzz/folder/scratch_folder.h"

namespace hallmark::fuzz {
namespace {

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t FilesIn(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(PackedFolder, IsUnpackedAndPackedAgain) {
  const std::string packed = "before\n%% a\nx\ny\n%% b\n%% c\nz";
  const auto files = Unpack(packed);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[0].name, "");
  EXPECT_EQ(files[0].text, "before\n");
  EXPECT_EQ(files[1].text, "x\ny\n");
  EXPECT_EQ(files[2].text, "");
  EXPECT_EQ(files[3].text, "z");
  EXPECT_EQ(Pack(files), packed);
  EXPECT_TRUE(Unpack("").empty());
}

TEST(ScratchFolder, HoldsTheFilesOfOneInput) {
  std::string path;
  {
    ScratchFolder folder;
    path = folder.path();
    folder.Write("%% a\ntext\n%% ../b\nx\n%% ..\nx\n%% c.safetensors\nraw\n");
    EXPECT_EQ(ReadWhole(path + "/a"), "text\n");
    EXPECT_EQ(ReadWhole(path + "/c.safetensors"), "raw\n");
    EXPECT_EQ(FilesIn(path), 2u);
    folder.Write("%% d\n");
    EXPECT_EQ(FilesIn(path), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolder, GivesAHeaderItsLengthDataAndMarkers) {
  ScratchFolder folder;
  const std::string header =
      R"({"w":{"data_offsets":[0,3]},"p.mul1":{"data_offsets":[3,7]},"q.mcg":{"data_offsets":[6,9]}})"
      "\n";
  folder.Write("%% m.safetensors\n" + header);
  const std::string file = ReadWhole(folder.path() + "/m.safetensors");
  ASSERT_EQ(file.size(), 8 + header.size() + 9);
  EXPECT_EQ(static_cast<size_t>(static_cast<uint8_t>(file[0])), header.size());
  EXPECT_EQ(file.substr(8, header.size()), header);
  // The second marker would end past the file: it is left out.
  EXPECT_EQ(file.substr(8 + header.size()), std::string("\0\0\0\x2d\xd1\xdc\x83\0\0", 9));
}

}  // namespace
}  // namespace hallmark::fuzz
