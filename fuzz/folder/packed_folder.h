// SPDX-License-Identifier: Apache-2.0
// PackedFolder: a folder of small files as one text, so that a fuzzer can change several files of
// a checkpoint at once. A line "%% name" begins a file; what follows, up to the next such line, is
// its text. Text before the first such line is a file without a name. For tests alone.
#ifndef HALLMARK_FUZZ_FOLDER_PACKED_FOLDER_H_
#define HALLMARK_FUZZ_FOLDER_PACKED_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

namespace hallmark::fuzz {

struct PackedFile {
  std::string name;
  std::string text;
};

std::vector<PackedFile> Unpack(std::string_view packed);
std::string Pack(const std::vector<PackedFile>& files);

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_FOLDER_PACKED_FOLDER_H_
