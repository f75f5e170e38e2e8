// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/judged_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <tuple>

namespace hallmark {

std::optional<FileStamp> StampOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileStamp{.bytes = static_cast<uint64_t>(info.st_size),
                   .seconds = info.st_mtim.tv_sec,
                   .nanoseconds = info.st_mtim.tv_nsec,
                   .inode = static_cast<uint64_t>(info.st_ino)};
}

std::vector<JudgedFile> AddFiles(const std::vector<JudgedFile>& more,
                                 std::vector<JudgedFile>* files) {
  std::vector<JudgedFile> changed;
  for (const JudgedFile& file : more) {
    const auto known = std::ranges::find_if(*files, [&file](const JudgedFile& other) {
      return other.folder == file.folder && other.name == file.name;
    });
    if (known == files->end()) {
      files->push_back(file);
      continue;
    }
    if (known->stamp != file.stamp) changed.push_back(file);
    if (known->sha256.empty()) known->sha256 = file.sha256;
  }
  std::ranges::sort(*files, {}, [](const JudgedFile& file) {
    return std::tuple(file.folder != kModelFolder, file.folder, file.name);
  });
  return changed;
}

std::vector<JudgedFile> ChangedFiles(const std::vector<JudgedFile>& files) {
  std::vector<JudgedFile> changed;
  std::ranges::copy_if(files, std::back_inserter(changed),
                       [](const JudgedFile& file) { return StampOf(file.path) != file.stamp; });
  return changed;
}

}  // namespace hallmark
