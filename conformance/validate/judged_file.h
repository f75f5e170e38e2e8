// SPDX-License-Identifier: Apache-2.0
// JudgedFile: a file that a step has read, and what ties a report to its bytes: size, SHA-256, and
// a stamp by which a later look finds that it was changed. Not for finding what is wrong in it.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_JUDGED_FILE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_JUDGED_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hallmark {

struct FileStamp {
  uint64_t bytes = 0;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};
// Links are followed; nullopt when the file is not there.
std::optional<FileStamp> StampOf(const std::string& path);

inline constexpr char kModelFolder[] = "model";
inline constexpr char kDrafterFolder[] = "drafter";

struct JudgedFile {
  std::string folder;  // kModelFolder or kDrafterFolder
  std::string name;    // in it
  std::string path;
  FileStamp stamp;     // from before the file was read
  std::string sha256;  // hex; empty: not taken
};

// Adds files to a list that is sorted: the model's before the drafter's, then by name. A file that
// is there already keeps its stamp, and gets the digest if it has none. Returns those whose stamps
// differ: they changed between two readings.
std::vector<JudgedFile> AddFiles(const std::vector<JudgedFile>& more,
                                 std::vector<JudgedFile>* files);

// Those that are no longer what they were when they were read.
std::vector<JudgedFile> ChangedFiles(const std::vector<JudgedFile>& files);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_JUDGED_FILE_H_
