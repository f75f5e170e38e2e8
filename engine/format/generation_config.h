// SPDX-License-Identifier: Apache-2.0
// StopIds: the union of the end-of-sequence ids that a checkpoint states, each with every place
// that states it. Not for sampling settings, which are the caller's choice. An end-of-turn id often
// stands in generation_config.json alone.
#ifndef HALLMARK_ENGINE_FORMAT_GENERATION_CONFIG_H_
#define HALLMARK_ENGINE_FORMAT_GENERATION_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

struct StopId {
  int64_t id = 0;
  std::vector<Locator> stated_at;  // file and JSON pointer
};

struct StopIds {
  std::vector<StopId> ids;  // ascending

  bool Contains(int64_t id) const;
  std::vector<int64_t> values() const;
};

// Adds the ids of one config's root and, if it has one, its text_config: an id, a list, or null.
// kMalformed for another type, kOutOfRange outside [0, vocab).
Status AddStopIds(const Json& config, const std::string& file, int64_t vocab, StopIds* ids);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_GENERATION_CONFIG_H_
