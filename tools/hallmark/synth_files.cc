// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/synth_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace hallmark {
namespace {

constexpr uint64_t kShardBytes = uint64_t{4} << 30;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

using Tensors = std::span<const SynthTensor>;

class OutputFile {
 public:
  static Result<OutputFile> Create(const std::string& path) {
    OutputFile file(path, ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.descriptor_ < 0) return file.Failed();
    return file;
  }
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status Write(const void* data, size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, at, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Failed();
      at += written;
      bytes -= static_cast<size_t>(written);
    }
    return {};
  }
  // A hole: it takes no room, and reads as zeros.
  Status Skip(uint64_t bytes) {
    const off_t end = ::lseek(descriptor_, static_cast<off_t>(bytes), SEEK_CUR);
    if (end < 0 || ::ftruncate(descriptor_, end) != 0) return Failed();
    return {};
  }
  Status Close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) return Failed();
    return {};
  }

 private:
  OutputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  tl::unexpected<Error> Failed() const {
    return Fail(Code::kIo, "cannot write the file: " + std::string(std::strerror(errno)),
                {.file = path_});
  }

  std::string path_;
  int descriptor_;
};

Status WriteWhole(const std::string& path, const std::string& text) {
  OutputFile file = TRY(OutputFile::Create(path));
  TRY(file.Write(text.data(), text.size()));
  return file.Close();
}

std::vector<Tensors> CutIntoShards(Tensors tensors) {
  std::vector<Tensors> shards;
  size_t first = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (i > first && bytes + tensors[i].bytes() > kShardBytes) {
      shards.push_back(tensors.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += tensors[i].bytes();
  }
  shards.push_back(tensors.subspan(first));
  return shards;
}

// "model-00001-of-00004.safetensors"; one shard has no number.
std::string ShardName(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  const auto number = [](size_t value) {
    const std::string digits = std::to_string(value);
    return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
  };
  return "model-" + number(index + 1) + "-of-" + number(count) + ".safetensors";
}

std::string HeaderOf(Tensors tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t at = 0;
  for (const SynthTensor& tensor : tensors) {
    const uint64_t end = at + tensor.bytes();
    header[tensor.name] = {{"dtype", std::string(DTypeName(tensor.dtype))},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data begins at a multiple of 8
  return text;
}

class ShardWriter {
 public:
  explicit ShardWriter(const SynthFilesOptions& options)
      : options_(options), filler_(options.seed), piece_(kPieceBytes) {}

  Status Write(const std::string& path, Tensors tensors) {
    OutputFile file = TRY(OutputFile::Create(path));
    const std::string header = HeaderOf(tensors);
    const uint64_t size = header.size();
    TRY(file.Write(&size, sizeof(size)));
    TRY(file.Write(header.data(), header.size()));
    for (const SynthTensor& tensor : tensors) {
      if (options_.headers_only && tensor.fill != SynthFill::kMarker) {
        TRY(file.Skip(tensor.bytes()));
      } else {
        TRY(WriteData(file, tensor));
      }
    }
    return file.Close();
  }

 private:
  Status WriteData(OutputFile& file, const SynthTensor& tensor) {
    for (uint64_t done = 0; done < tensor.bytes();) {
      const auto count = static_cast<size_t>(std::min(kPieceBytes, tensor.bytes() - done));
      const auto piece = std::span(piece_).first(count);
      filler_.Fill(tensor, done, piece);
      TRY(file.Write(piece.data(), count));
      done += count;
      written_ += count;
      if (options_.progress) options_.progress(written_);
    }
    return {};
  }

  const SynthFilesOptions& options_;
  SynthFiller filler_;
  std::vector<std::byte> piece_;
  uint64_t written_ = 0;
};

}  // namespace

uint64_t DataBytes(const SynthCheckpoint& checkpoint) {
  uint64_t bytes = 0;
  for (const SynthTensor& tensor : checkpoint.tensors) bytes += tensor.bytes();
  return bytes;
}

Status WriteSynthFiles(const SynthCheckpoint& checkpoint, const std::string& folder,
                       const SynthFilesOptions& options) {
  TRY(WriteWhole(folder + "/config.json", checkpoint.config));
  if (!checkpoint.quantization.empty()) {
    TRY(WriteWhole(folder + "/quantization_config.json", checkpoint.quantization));
  }
  const std::vector<Tensors> shards = CutIntoShards(checkpoint.tensors);
  ShardWriter writer(options);
  nlohmann::json map = nlohmann::json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = ShardName(i, shards.size());
    for (const SynthTensor& tensor : shards[i]) map[tensor.name] = name;
    TRY(writer.Write(folder + "/" + name, shards[i]));
  }
  if (shards.size() == 1) return {};
  const nlohmann::json index = {{"metadata", {{"total_size", DataBytes(checkpoint)}}},
                                {"weight_map", std::move(map)}};
  return WriteWhole(folder + "/model.safetensors.index.json", index.dump(1) + "\n");
}

}  // namespace hallmark
