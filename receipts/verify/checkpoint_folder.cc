// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/checkpoint_folder.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"

namespace hallmark::verify {
namespace {

// Files that decide numbers or ids wherever they lie: one that a receipt leaves out would go
// unseen. Other shards are read only if the index names them, and the index is listed by digest.
bool IsRead(const std::string& name) {
  return name == "model.safetensors" || name == "model.safetensors.index.json" ||
         name == "config.json" || name == "quantization_config.json" ||
         name == "generation_config.json" || name == "tokenizer.json";
}

}  // namespace

Status CheckFolder(const Json& files, const std::string& folder, const std::string& pointer,
                   Findings& findings) {
  std::error_code error;
  std::vector<std::string> present;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    present.push_back(at->path().filename().string());
  }
  if (error) {
    return Fail(Code::kIo, "the folder could not be read: " + error.message(), {.file = folder});
  }
  std::sort(present.begin(), present.end());
  std::set<std::string> listed;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto name = files[i]["name"].get<std::string>();
    const std::string at = Below(pointer, i);
    listed.insert(name);
    if (!std::binary_search(present.begin(), present.end(), name)) {
      findings.Add("folder-file-missing", at + "/name", ShownText(name) + " in the folder",
                   "nothing");
      continue;
    }
    const MappedFile file = TRY(MappedFile::Open(folder + "/" + name));
    if (files[i]["bytes"].get<uint64_t>() != file.bytes().size()) {
      findings.Add("folder-file-bytes", at + "/bytes", std::to_string(file.bytes().size()),
                   files[i]["bytes"].dump());
    } else {
      const std::string digest = Sha256Hex(file.bytes());
      TRY(file.Intact());
      findings.Equal("folder-file-digest", at + "/sha256", digest,
                     files[i]["sha256"].get<std::string>());
    }
  }
  for (const std::string& name : present) {
    if (IsRead(name) && !listed.contains(name)) {
      findings.Add("folder-file-unlisted", pointer, "the file " + ShownText(name), "nothing");
    }
  }
  return {};
}

}  // namespace hallmark::verify
