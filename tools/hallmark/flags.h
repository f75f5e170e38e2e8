// SPDX-License-Identifier: Apache-2.0
// Values of command-line flags: text to typed values, every refusal naming its flag and what was
// expected. Not the parser of the command line itself.
#ifndef HALLMARK_TOOLS_HALLMARK_FLAGS_H_
#define HALLMARK_TOOLS_HALLMARK_FLAGS_H_

#include <cstdint>
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

// "1,2,3": at least one id, none negative. Whether the vocabulary holds them is CheckIds' task.
Result<std::vector<int32_t>> ParseIds(const std::string& text);
// kOutOfRange with --ids for an id outside the vocabulary or more ids than positions.
Status CheckIds(const std::vector<int32_t>& ids, const Session& session);

// What every command that runs a model takes.
struct EngineFlags {
  std::string kv = "bf16";
  std::string device = "cpu";
  std::string tier;
  std::string threads = "0";
};
Result<SessionOptions> ParseEngineFlags(const EngineFlags& flags);

// kNotFound when `directory` is no folder that is there: a wrong argument, not a bad checkpoint.
Status CheckDirectory(const std::string& directory);
// Refuses an output file that is a folder or a device, or whose folder cannot be written, before
// work starts.
Status CheckOutputFile(const std::string& path);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_FLAGS_H_
