// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/checkpoint_copy.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "conformance/harness/paths.h"
#include "engine/base/check.h"
#include "engine/base/json.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr size_t kKept = 16;  // bytes; a marker has four

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  CHECK(stream.good());
  return text.str();
}

}  // namespace

CheckpointCopy::CheckpointCopy(const std::string& folder) : shards_(1) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") {
      files_[entry.path().filename().string()] = ReadAll(entry.path());
    }
  }
  const auto weights = SafetensorsFile::Open(folder + "/" + kSingle);
  CHECK(weights.has_value() && !files_.empty());
  std::vector<TensorView> tensors(weights->tensors().begin(), weights->tensors().end());
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorView& a, const TensorView& b) { return a.file_offset < b.file_offset; });
  for (const TensorView& tensor : tensors) {
    TensorSpec spec{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape};
    if (tensor.bytes.size() <= kKept) {
      spec.bytes.assign(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    }
    shards_[0].push_back(std::move(spec));
  }
}

CheckpointCopy CheckpointCopy::Complete() {
  static const CheckpointCopy golden(GoldenPath("models/scribe-11m-exl3"));
  CheckpointCopy copy = golden;
  copy.SetFile("LICENSE", "Apache License, Version 2.0\n");
  copy.SetFile("generation_config.json", R"({"eos_token_id": [4072, 4070], "temperature": 0.6,
    "top_k": 20, "top_p": 0.95})");
  copy.SetFile("chat_template.jinja",
               "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>\n{% endfor %}");
  copy.SetFile("tokenizer_config.json", R"({"eos_token": "<|im_end|>",
    "pad_token": {"content": "<|endoftext|>"}, "bos_token": null,
    "added_tokens_decoder": {"4070": {"content": "<|endoftext|>"},
                             "4072": {"content": "<|im_end|>"}}})");
  return copy;
}

CheckpointCopy CheckpointCopy::Drafter() {
  static const CheckpointCopy golden(GoldenPath("models/scribe-11m-dflash2"));
  CheckpointCopy copy = golden;
  copy.SetFile("LICENSE", "Apache License, Version 2.0\n");
  return copy;
}

void CheckpointCopy::RemoveFile(const std::string& file) { CHECK(files_.erase(file) == 1); }

void CheckpointCopy::Set(const std::string& file, const std::string& pointer,
                         const std::string& json) {
  Json document = Json::parse(files_.at(file));
  document[Json::json_pointer(pointer)] = Json::parse(json);
  files_[file] = document.dump();
}

void CheckpointCopy::Erase(const std::string& file, const std::string& pointer) {
  Json document = Json::parse(files_.at(file));
  const Json::json_pointer at(pointer);
  Json& parent = document[at.parent_pointer()];
  if (parent.is_array()) {
    parent.erase(std::stoul(at.back()));
  } else {
    CHECK(parent.erase(at.back()) == 1);
  }
  files_[file] = document.dump();
}

TensorSpec& CheckpointCopy::Tensor(std::string_view name) {
  for (auto& shard : shards_) {
    for (TensorSpec& tensor : shard) {
      if (tensor.name == name) return tensor;
    }
  }
  CHECK(false && "there is no such tensor");
  return shards_[0][0];
}

void CheckpointCopy::Add(TensorSpec tensor) { shards_[0].push_back(std::move(tensor)); }

void CheckpointCopy::Remove(std::string_view name) {
  size_t removed = 0;
  for (auto& shard : shards_) {
    removed += std::erase_if(shard, [name](const TensorSpec& t) { return t.name == name; });
  }
  CHECK(removed == 1);
}

void CheckpointCopy::RemovePrefix(std::string_view prefix) {
  size_t removed = 0;
  for (auto& shard : shards_) {
    removed +=
        std::erase_if(shard, [prefix](const TensorSpec& t) { return t.name.starts_with(prefix); });
  }
  CHECK(removed > 0);
}

std::string CheckpointCopy::ShardFile(int index) {
  return "model-0000" + std::to_string(index + 1) + "-of-00002.safetensors";
}

void CheckpointCopy::Shard() {
  CHECK(shards_.size() == 1);
  std::vector<TensorSpec>& all = shards_[0];
  const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::vector<TensorSpec> second(std::make_move_iterator(half), std::make_move_iterator(all.end()));
  all.erase(half, all.end());
  shards_.push_back(std::move(second));
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  uint64_t total = 0;
  for (int i = 0; i < 2; ++i) {
    for (const TensorSpec& tensor : shard(i)) {
      index["weight_map"][tensor.name] = ShardFile(i);
      total += tensor.size();
    }
  }
  index["metadata"]["total_size"] = total;
  files_[kIndex] = index.dump();
}

void CheckpointCopy::Write(const std::string& folder) const {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : files_) {
    CHECK(WriteText(folder + "/" + name, text).has_value());
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::string name = shards_.size() == 1 ? kSingle : ShardFile(static_cast<int>(i));
    CHECK(WriteSafetensors(folder + "/" + name, shards_[i]).has_value());
  }
}

}  // namespace hallmark
