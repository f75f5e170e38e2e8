// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/watched_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/base/sha256.h"

namespace hallmark {
namespace {

// What downloaders append to the name of a file that they have not finished. A file of aria2's
// beside another says that the other is not whole, whatever its size: space is taken in advance.
constexpr std::string_view kControl = ".aria2";
constexpr std::array<std::string_view, 6> kPartial = {".incomplete", ".part",     ".partial",
                                                      ".crdownload", ".download", ".tmp"};
constexpr const char* kCache = ".cache/huggingface/download";
constexpr std::string_view kShard = ".safetensors";
constexpr uint64_t kMaxDocument = uint64_t{64} << 20;

std::string_view Head(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 200)};
}

bool IsPointer(std::string_view head) {
  return head.starts_with("version https://git-lfs.github.com/") ||
         head.starts_with("/annex/objects/");
}

// A page, or the short sentence that a server gives in place of a file.
bool IsAnswer(std::string_view head) {
  const size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  head.remove_prefix(begin);
  for (const std::string_view text :
       {"<!DOCTYPE", "<!doctype", "<html", "<HTML", "<?xml", "Entry not found",
        "Invalid username or password", "Repository not found", "Access to model"}) {
    if (head.starts_with(text)) return true;
  }
  return false;
}

}  // namespace

WatchedFolder::WatchedFolder(std::string path, FindingList* findings)
    : path_(std::move(path)), findings_(findings) {
  std::error_code error;
  if (!std::filesystem::is_directory(path_, error)) {
    const bool there = std::filesystem::exists(path_, error);
    findings_->Add("not-a-folder", {.code = there ? Code::kUnsupported : Code::kNotFound,
                                    .message = "expected a folder with a checkpoint",
                                    .where = {.file = path_}});
    return;
  }
  std::filesystem::directory_iterator at(path_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    const bool folder = at->is_directory(ignored) && !at->is_symlink(ignored);
    names_.push_back(at->path().filename().string() + (folder ? "/" : ""));
  }
  if (error) {
    findings_->Add("unreadable-file", {.code = Code::kIo,
                                       .message = "cannot list the folder: " + error.message(),
                                       .where = {.file = path_}});
    return;
  }
  std::sort(names_.begin(), names_.end());
  listed_ = true;
  FindDownloads();
}

std::string WatchedFolder::PathOf(const std::string& name) const {
  return path_.empty() || path_.back() == '/' ? path_ + name : path_ + "/" + name;
}

bool WatchedFolder::Has(const std::string& name) const { return HasEntry(PathOf(name)); }

void WatchedFolder::Tell(std::string_view check, Code code, const std::string& name,
                         std::string message) {
  findings_->Add(check,
                 {.code = code, .message = std::move(message), .where = {.file = PathOf(name)}});
}

void WatchedFolder::FindDownloads() {
  for (const std::string& name : names_) {
    if (name.ends_with(kControl)) {
      const std::string whole = name.substr(0, name.size() - kControl.size());
      Tell("unfinished-download", Code::kMismatch, name,
           "the download of \"" + whole + "\" has not ended: its control file is there");
    }
    for (const std::string_view tail : kPartial) {
      if (!name.ends_with(tail)) continue;
      const std::string whole = name.substr(0, name.size() - tail.size());
      if (whole.empty() || Has(whole)) {
        Tell("leftover-download", Code::kMismatch, name, "a part of a download was left over");
      } else {
        Tell("unfinished-download", Code::kMismatch, name,
             "the download of \"" + whole + "\" has not ended");
      }
    }
  }
  std::error_code error;
  std::vector<std::string> cached;
  std::filesystem::directory_iterator at(PathOf(kCache), error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(".incomplete")) cached.push_back(kCache + ("/" + name));
  }
  std::sort(cached.begin(), cached.end());
  // Their names are digests: which file they belong to is not to be seen.
  for (const std::string& name : cached) {
    Tell("leftover-download", Code::kMismatch, name, "a part of a download lies in its cache");
  }
}

Result<MappedFile> WatchedFolder::Open(const std::string& name) {
  // Before the file is opened: a change between the two is one that is found.
  const auto stamp = StampOf(PathOf(name));
  auto file = MappedFile::Open(PathOf(name));
  if (!file.has_value() || !stamp) return file;
  const bool whole = !name.ends_with(kShard) && file->bytes().size() <= kMaxDocument;
  read_[name] = {.stamp = *stamp, .sha256 = whole ? Sha256Hex(file->bytes()) : ""};
  return file;
}

std::optional<MappedFile> WatchedFolder::Peek(const std::string& name) {
  auto file = Open(name);
  if (!file.has_value()) return std::nullopt;
  return std::move(*file);
}

std::optional<MappedFile> WatchedFolder::Read(const std::string& name) {
  const std::string path = PathOf(name);
  auto file = Open(name);
  if (!file.has_value()) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(path, error).string();
    if (!error && target.find(".git/annex/") != std::string::npos) {
      Tell("pointer-file", Code::kNotFound, name,
           "the file is a link to what git annex has not got");
    } else {
      findings_->Add("unreadable-file", file.error());
    }
    return std::nullopt;
  }
  const std::string_view head = Head(*file);
  if (head.empty()) {
    Tell("empty-file", Code::kMalformed, name, "the file has no bytes");
  } else if (IsPointer(head)) {
    Tell("pointer-file", Code::kMalformed, name, "the file is a pointer to what was not fetched");
  } else if (IsAnswer(head)) {
    Tell("not-the-file", Code::kMalformed, name,
         "the file holds a server's answer: \"" + std::string(head.substr(0, 40)) + "\"");
  } else {
    return std::move(*file);
  }
  return std::nullopt;
}

std::optional<std::string> WatchedFolder::ReadText(const std::string& name) {
  const auto file = Read(name);
  if (!file) return std::nullopt;
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxDocument) {
    Tell("json-broken", Code::kOutOfRange, name,
         "the file has " + std::to_string(bytes.size()) + " bytes, at most " +
             std::to_string(kMaxDocument) + " are read");
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::optional<Json> WatchedFolder::ReadDocument(const std::string& name) {
  const auto text = ReadText(name);
  if (!text) return std::nullopt;
  auto document = ParseJson(*text, PathOf(name));
  if (document.has_value() && document->is_object()) return std::move(*document);
  if (document.has_value()) {
    Tell("json-broken", Code::kMalformed, name,
         std::string("found ") + document->type_name() + ", expected an object");
  } else {
    findings_->Add("json-broken", document.error());
  }
  return std::nullopt;
}

void WatchedFolder::FindChanges() {
  for (const auto& [name, reading] : read_) {
    const FileStamp& stamp = reading.stamp;
    const auto now = StampOf(PathOf(name));
    if (now && *now == stamp) continue;
    Tell("file-changed", Code::kIo, name,
         !now ? "the file vanished while the folder was read"
              : "the file changed while the folder was read: " + std::to_string(stamp.bytes) +
                    " bytes before, " + std::to_string(now->bytes) + " after");
  }
}

Json WatchedFolder::FilesJson() const {
  Json files = Json::array();
  for (const auto& [name, reading] : read_) {
    files.push_back({{"name", name}, {"bytes", reading.stamp.bytes}});
  }
  return files;
}

std::vector<JudgedFile> WatchedFolder::Files(const char* folder) const {
  std::vector<JudgedFile> files;
  for (const auto& [name, reading] : read_) {
    files.push_back({.folder = folder,
                     .name = name,
                     .path = PathOf(name),
                     .stamp = reading.stamp,
                     .sha256 = reading.sha256});
  }
  return files;
}

}  // namespace hallmark
