// SPDX-License-Identifier: Apache-2.0
// WatchedFolder: a checkpoint's folder whose files are read one by one, each for itself, so that
// one at fault keeps nobody from the others; and which says at the end whether any of them changed
// in the meantime. Finds what was never the file it is named for: half downloads, pointer files of
// git lfs and git annex, a server's answer, nothing at all. Clause: format-reject.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_WATCHED_FOLDER_H_
#define HALLMARK_CONFORMANCE_VALIDATE_WATCHED_FOLDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/validate/checks.h"
#include "conformance/validate/judged_file.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"

namespace hallmark {

class WatchedFolder {
 public:
  // Lists the folder, and tells `findings` of downloads that have not ended. `findings` outlives
  // it.
  WatchedFolder(std::string path, FindingList* findings);

  bool listed() const { return listed_; }  // false: a finding says why
  const std::string& path() const { return path_; }
  // The names of what is in it, sorted; those of folders end in a slash.
  const std::vector<std::string>& names() const { return names_; }
  std::string PathOf(const std::string& name) const;
  bool Has(const std::string& name) const;

  // The whole file, nullopt when it cannot be had: a finding says why; with Peek nothing does.
  std::optional<MappedFile> Peek(const std::string& name);
  std::optional<MappedFile> Read(const std::string& name);
  std::optional<std::string> ReadText(const std::string& name);
  std::optional<Json> ReadDocument(const std::string& name);

  // Files that were read and are no longer what they were: one finding each.
  void FindChanges();
  // The same as judged files of `folder`. Shards have no digest: their data was not read.
  std::vector<JudgedFile> Files(const char* folder) const;
  size_t files_read() const { return read_.size(); }
  // Names and bytes of the files that were read.
  Json FilesJson() const;

 private:
  struct Reading {
    FileStamp stamp;  // from before the file was opened
    std::string sha256;
  };
  Result<MappedFile> Open(const std::string& name);
  void FindDownloads();
  void Tell(std::string_view check, Code code, const std::string& name, std::string message);

  std::string path_;
  FindingList* findings_;
  bool listed_ = false;
  std::vector<std::string> names_;
  std::map<std::string, Reading> read_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_WATCHED_FOLDER_H_
