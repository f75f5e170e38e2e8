// SPDX-License-Identifier: Apache-2.0
// ScratchFolder: a folder in memory (/dev/shm where there is one) that holds the files of one input
// at a time. For fuzz targets alone.
//
// A .safetensors file whose text begins with "{" is that text as header: the length before it is
// written by this class and the data behind it are a hole as large as the last offset says, in
// which each tensor of a codebook marker holds the marker's number. Other texts are whole files.
#ifndef HALLMARK_FUZZ_FOLDER_SCRATCH_FOLDER_H_
#define HALLMARK_FUZZ_FOLDER_SCRATCH_FOLDER_H_

#include <string>
#include <string_view>
#include <vector>

namespace hallmark::fuzz {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Removes what the last call wrote. Names that are no plain file name are left out.
  void Write(std::string_view packed);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> written_;
};

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_FOLDER_SCRATCH_FOLDER_H_
