// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "engine/backend/cpu/parallel.h"
#include "engine/backend/cpu/tier.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_inventory.h"
#include "engine/model/model.h"

namespace hallmark {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxThreads = 256;  // as many as the CPU backend takes
constexpr char kDrafterWeights[] = "--drafter-weights";
constexpr char kDraftVocab[] = "--draft-vocab";

tl::unexpected<Error> BadFlag(const std::string& text, const std::string& expected,
                              const char* flag) {
  return Fail(Code::kOutOfRange, "found \"" + text + "\", expected " + expected, {.flag = flag});
}

template <typename T>
bool ParseWhole(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

// "A:B,C:D".
Result<std::vector<IdSpan>> ParseSpans(const std::string& text) {
  std::vector<IdSpan> spans;
  size_t begin = 0;
  while (true) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = std::string_view(text).substr(begin, comma - begin);
    const size_t colon = std::min(piece.find(':'), piece.size());
    IdSpan span;
    if (colon == piece.size() || !ParseWhole(piece.substr(0, colon), &span.begin) ||
        !ParseWhole(piece.substr(colon + 1), &span.end) || span.begin < 0 ||
        span.begin >= span.end) {
      return BadFlag(std::string(piece),
                     "spans of ids, first:past-the-last, separated by commas, such as 0:1024",
                     kDraftVocab);
    }
    spans.push_back(span);
    if (comma == text.size()) return spans;
    begin = comma + 1;
  }
}

}  // namespace

Result<int64_t> ParseInteger(const std::string& text, const char* flag, int64_t low, int64_t high) {
  int64_t value = 0;
  if (!ParseWhole(text, &value) || value < low || value > high) {
    std::string expected = "a whole number of " + std::to_string(low) + " or more";
    if (high != std::numeric_limits<int64_t>::max()) {
      expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    }
    return BadFlag(text, expected, flag);
  }
  return value;
}

Result<uint64_t> ParseSeed(const std::string& text, const char* flag) {
  uint64_t value = 0;
  if (!ParseWhole(text, &value)) {
    return BadFlag(text, "a whole number from 0 to 18446744073709551615", flag);
  }
  return value;
}

Result<double> ParseFraction(const std::string& text, const char* flag) {
  double value = 0;
  if (!ParseWhole(text, &value) || !std::isfinite(value)) return BadFlag(text, "a number", flag);
  return value;
}

Result<uint64_t> ParseBytes(const std::string& text, const char* flag) {
  constexpr std::pair<const char*, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  std::string number = text;
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    number = text.substr(0, text.size() - 3);
    shift = bits;
  }
  constexpr int64_t kMost = int64_t{1} << 50;
  const auto value = ParseInteger(number, flag, 0, kMost >> shift);
  if (value.has_value()) return static_cast<uint64_t>(*value) << shift;
  return BadFlag(text, "a whole number of bytes, KiB, MiB or GiB, such as 24GiB", flag);
}

Result<std::vector<int32_t>> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  size_t begin = 0;
  while (true) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    int32_t id = 0;
    if (!ParseWhole(std::string_view(text).substr(begin, comma - begin), &id) || id < 0) {
      return BadFlag(text.substr(begin, comma - begin),
                     "token ids separated by commas, such as 1,2,3", "--ids");
    }
    ids.push_back(id);
    if (comma == text.size()) return ids;
    begin = comma + 1;
  }
}

Status CheckIds(const std::vector<int32_t>& ids, const Session& session, const Locator& where) {
  for (const int32_t id : ids) {
    if (id >= session.vocab_size()) {
      return Fail(Code::kOutOfRange,
                  "found id " + std::to_string(id) + ", expected ids below the vocabulary's " +
                      std::to_string(session.vocab_size()),
                  where);
    }
  }
  const int64_t positions = session.model().config.max_positions;
  if (static_cast<int64_t>(ids.size()) > positions) {
    return Fail(Code::kOutOfRange,
                "found " + std::to_string(ids.size()) + " ids, expected at most the model's " +
                    std::to_string(positions) + " positions",
                where);
  }
  return {};
}

Result<SessionOptions> ParseEngineFlags(const EngineFlags& flags) {
  SessionOptions options;
  if (flags.kv != "bf16" && flags.kv != "fp8") return BadFlag(flags.kv, "bf16 or fp8", "--kv");
  options.kv = flags.kv == "bf16" ? KvType::kBf16 : KvType::kFp8E4m3;
  if (flags.device != "cpu" && flags.device != "cuda") {
    return BadFlag(flags.device, "cpu or cuda", "--device");
  }
  options.device = flags.device;
  if (flags.embedding != "device" && flags.embedding != "mapped") {
    return BadFlag(flags.embedding, "device or mapped", "--embedding");
  }
  options.mapped_embedding = flags.embedding == "mapped";
  if (flags.vram) {
    options.device_bytes = TRY(ParseBytes(*flags.vram, "--vram"));
    if (options.device_bytes == 0) return BadFlag(*flags.vram, "more than no bytes", "--vram");
  }
  if (!flags.tier.empty()) {
    const auto tier = ParseCpuTier(flags.tier);
    if (!tier) return BadFlag(flags.tier, "scalar, avx2, avx512 or avx512fp16", "--tier");
    auto chosen = ChooseCpuTier(tier);
    if (!chosen.has_value()) {
      Error error = std::move(chosen).error();
      error.where.flag = "--tier";
      return Fail(std::move(error));
    }
  }
  options.tier = flags.tier;
  options.threads = static_cast<int>(TRY(ParseInteger(flags.threads, "--threads", 0, kMaxThreads)));
  // Settled here, so that what ran can be reported.
  if (options.threads == 0) options.threads = std::min(DefaultThreads(), kMaxThreads);
  return options;
}

Status ParseDraftFlags(const DraftFlags& flags, SessionOptions& options) {
  if (!flags.drafter) {
    const char* idle = flags.weights ? kDrafterWeights : flags.vocabulary ? kDraftVocab : nullptr;
    if (idle == nullptr) return {};
    return Fail(Code::kOutOfRange, "there is no drafter that it could apply to, expected --drafter",
                {.flag = idle});
  }
  TRY(CheckDirectory(*flags.drafter, "--drafter"));
  options.drafter = *flags.drafter;
  if (flags.weights) {
    if (*flags.weights != "stored" && *flags.weights != "4bit") {
      return BadFlag(*flags.weights, "stored or 4bit", kDrafterWeights);
    }
    options.drafter_options.weights =
        *flags.weights == "stored" ? DrafterWeights::kBf16 : DrafterWeights::kAffine4;
  }
  if (flags.vocabulary) options.drafter_options.vocabulary = TRY(ParseSpans(*flags.vocabulary));
  return {};
}

Result<std::unique_ptr<Session>> OpenSession(const std::string& directory,
                                             const SessionOptions& options) {
  auto session = Session::Open(directory, options);
  if (session.has_value()) return session;
  Error error = std::move(session).error();
  // The engine knows the value, not how it was given.
  if (error.where.flag == "draft vocabulary") error.where.flag = kDraftVocab;
  return Fail(std::move(error));
}

Status CheckDirectory(const std::string& directory, const char* flag) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (fs::is_directory(status)) return {};
  return Fail(Code::kNotFound,
              fs::exists(status) ? "found a file, expected a folder with config.json and weights"
                                 : "there is no such folder",
              {.file = directory, .flag = flag});
}

Status CheckOutputFile(const std::string& path, const char* flag) {
  std::error_code error;
  if (path.empty()) return BadFlag(path, "the name of a file to write", flag);
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    return Fail(Code::kOutOfRange, "found a folder, expected a file to write",
                {.file = path, .flag = flag});
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Fail(Code::kOutOfRange, "found a device, pipe or socket, expected a file to write",
                {.file = path, .flag = flag});
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return Fail(Code::kIo,
              "the folder of the output cannot be written: " + std::string(std::strerror(errno)),
              {.file = path});
}

Status CheckOutputApart(const std::string& path, std::span<const std::string> inputs) {
  std::error_code none;
  const fs::path place = fs::canonical(path, none);
  if (none) return {};  // not there yet
  for (const std::string& input : inputs) {
    const bool inside = fs::is_directory(input, none);
    if (!fs::equivalent(inside ? place.parent_path() : place, input, none)) continue;
    return Fail(Code::kOutOfRange, "this file is read by the command, expected another to write",
                {.file = path, .flag = "--out"});
  }
  return {};
}

Status CheckOutputApart(const std::string& path, const Session& session) {
  std::vector<std::string> inputs;
  const auto add = [&](std::span<const CheckpointFile> files) {
    for (const CheckpointFile& file : files) inputs.push_back(file.path);
  };
  add(session.checkpoint().shards());
  add(session.checkpoint().files());
  if (const DrafterCheckpoint* drafter = session.drafter_checkpoint()) {
    add(drafter->shards());
    add(drafter->files());
  }
  return CheckOutputApart(path, inputs);
}

}  // namespace hallmark
