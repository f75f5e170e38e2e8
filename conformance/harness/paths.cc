// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/paths.h"

#include <cstdlib>
#include <utility>

namespace hallmark {
namespace {

// An empty variable counts as unset, so that a CI file may pass one through unconditionally.
std::string EnvironmentOr(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(otherwise) : std::string(value);
}

}  // namespace

std::string GoldenPath(std::string_view relative) {
  std::string path = EnvironmentOr("HALLMARK_GOLDEN", HALLMARK_GOLDEN_DIR);
  if (!relative.empty()) {
    path += '/';
    path += relative;
  }
  return path;
}

std::string ModelUnderTest() {
  return EnvironmentOr("HALLMARK_MODEL", GoldenPath("models/scribe-11m-exl3"));
}

std::string DrafterUnderTest() {
  // The golden drafter was made for the golden model alone.
  const bool golden = EnvironmentOr("HALLMARK_MODEL", "").empty();
  return EnvironmentOr("HALLMARK_DRAFTER", golden ? GoldenPath("models/scribe-11m-dflash2") : "");
}

}  // namespace hallmark
