// SPDX-License-Identifier: Apache-2.0
// Values of command-line flags: text to typed values, every refusal naming its flag and what was
// expected. Not the parser of the command line itself.
#ifndef HALLMARK_TOOLS_HALLMARK_FLAGS_H_
#define HALLMARK_TOOLS_HALLMARK_FLAGS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/run/session.h"

namespace hallmark {

// A decimal number in [low, high], nothing around it.
Result<int64_t> ParseInteger(const std::string& text, const char* flag, int64_t low, int64_t high);
Result<uint64_t> ParseSeed(const std::string& text, const char* flag);
// A finite decimal fraction.
Result<double> ParseFraction(const std::string& text, const char* flag);

// Bytes: a whole number with KiB, MiB, GiB, or nothing behind it.
Result<uint64_t> ParseBytes(const std::string& text, const char* flag);

// "1,2,3": at least one id, none negative. Whether the vocabulary holds them is CheckIds' task.
Result<std::vector<int32_t>> ParseIds(const std::string& text);
// kOutOfRange at `where` for an id outside the vocabulary or more ids than positions.
Status CheckIds(const std::vector<int32_t>& ids, const Session& session,
                const Locator& where = {.flag = "--ids"});

// What every command that runs a model takes.
struct EngineFlags {
  std::string kv = "bf16";
  std::string device = "cpu";
  std::string tier;
  std::string threads = "0";
  std::string embedding = "device";
  std::optional<std::string> vram;  // absent: what the device has free
};
Result<SessionOptions> ParseEngineFlags(const EngineFlags& flags);

// What every command that drafts takes about its drafter; absent: not given.
struct DraftFlags {
  std::optional<std::string> drafter, weights, vocabulary;
};
// Adds them to `options`. kNotFound when the drafter's folder is not there; kOutOfRange for a flag
// that would do nothing without a drafter.
Status ParseDraftFlags(const DraftFlags& flags, SessionOptions& options);

// Session::Open; what it refuses about a flag's value names the flag.
Result<std::unique_ptr<Session>> OpenSession(const std::string& directory,
                                             const SessionOptions& options);

// What a flag names is the user's word: an error about it names the flag.
template <typename T>
Result<T> NameFlag(Result<T> result, const char* flag) {
  if (result.has_value()) return result;
  Error error = std::move(result).error();
  error.where.flag = flag;
  return Fail(std::move(error));
}

// kNotFound when `directory` is no folder that is there: a wrong argument, not a bad checkpoint.
Status CheckDirectory(const std::string& directory, const char* flag = "DIR");
// Refuses an output file that is a folder or a device, or whose folder cannot be written, before
// work starts.
Status CheckOutputFile(const std::string& path, const char* flag = "--out");
// kOutOfRange for an output file that is one of `inputs`, or lies in one that is a folder; links
// are followed. What does not exist, or has no name, is no file.
Status CheckOutputApart(const std::string& path, std::span<const std::string> inputs);
// The same for the files that a session was opened from.
Status CheckOutputApart(const std::string& path, const Session& session);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_FLAGS_H_
