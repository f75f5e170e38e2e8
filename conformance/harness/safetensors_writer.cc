// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/safetensors_writer.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace hallmark {
namespace {

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }

tl::unexpected<Error> CannotWrite(const std::string& path) {
  return Fail(Code::kIo, "cannot write the file", {.file = path});
}

}  // namespace

uint64_t TensorSpec::size() const {
  uint64_t count = static_cast<uint64_t>(DTypeSize(dtype));
  for (const int64_t extent : shape) count *= static_cast<uint64_t>(extent);
  return count;
}

std::string SafetensorsHeader(const std::vector<TensorSpec>& tensors,
                              const SafetensorsStyle& style) {
  std::string text = "{";
  const auto add = [&text](const std::string& item) {
    if (text.size() > 1) text += ",";
    text += item;
  };
  if (!style.metadata.empty()) {
    std::string items;
    for (const auto& [key, value] : style.metadata) {
      items += (items.empty() ? "" : ",") + Quoted(key) + ":" + Quoted(value);
    }
    add("\"__metadata__\":{" + items + "}");
  }
  uint64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    std::string shape;
    for (const int64_t extent : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    const uint64_t end = at + tensor.size();
    add(Quoted(tensor.name) + ":{\"dtype\":\"" + std::string(DTypeName(tensor.dtype)) +
        "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(at) + "," +
        std::to_string(end) + "]}");
    at = end;
  }
  text += "}" + std::string(style.spaces, ' ');
  if (style.align_data) text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string SafetensorsText(const std::string& header, const std::string& data) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i));
  }
  return text + header + data;
}

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return CannotWrite(path);
  return {};
}

Status WriteSafetensors(const std::string& path, const std::vector<TensorSpec>& tensors,
                        const SafetensorsStyle& style) {
  const std::string head = SafetensorsText(SafetensorsHeader(tensors, style));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << head;
  uint64_t at = head.size();
  for (const TensorSpec& tensor : tensors) {
    if (!tensor.bytes.empty()) {
      file.seekp(static_cast<std::streamoff>(at));
      file << tensor.bytes;
    }
    at += tensor.size();
  }
  file.close();
  // The end may be a hole, and bytes of another length than the tensor's would move it.
  std::error_code error;
  std::filesystem::resize_file(path, at, error);
  if (!file || error) return CannotWrite(path);
  return {};
}

}  // namespace hallmark
