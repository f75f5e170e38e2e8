// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/safetensors_out.h"

#include "receipts/emit/atomic_file.h"

namespace hallmark {
namespace {

// The eight-byte length and the header, padded by spaces to a multiple of 8.
std::string HeaderOf(std::span<const TensorOut> tensors) {
  std::string header = "{";
  size_t offset = 0;
  for (const TensorOut& tensor : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    if (offset > 0) header += ',';
    header += '"' + tensor.name + "\":{\"dtype\":\"" + tensor.type + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(offset) + ',';
    offset += tensor.bytes.size();
    header += std::to_string(offset) + "]}";
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string prefix;
  for (int byte = 0; byte < 8; ++byte) {
    prefix += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * byte) & 0xFF);
  }
  return prefix + header;
}

}  // namespace

Status WriteSafetensors(const std::string& path, std::span<const TensorOut> tensors) {
  const std::string header = HeaderOf(tensors);
  return WriteFileAtomically(path, [&](const ByteSink& sink) -> Status {
    TRY(sink(std::as_bytes(std::span(header))));
    for (const TensorOut& tensor : tensors) TRY(sink(tensor.bytes));
    return {};
  });
}

}  // namespace hallmark
