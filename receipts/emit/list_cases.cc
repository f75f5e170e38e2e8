// SPDX-License-Identifier: Apache-2.0
// Writes the must-pass lists, receipts/must_pass/L0.json to L3.json, from the cases the code has. A
// developer's tool: the lists are committed, and a test holds them against the code.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "conformance/cases/model_golden.h"
#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"
#include "receipts/emit/atomic_file.h"
#include "receipts/emit/must_pass_text.h"

int main(int argc, char** argv) {
  using namespace hallmark;
  if (argc != 2) {
    std::fprintf(stderr, "usage: list_cases FOLDER\n");
    return 2;
  }
  for (const Level level : kLevels) {
    const auto text = MustPassTextOf(level, GoldenPath(""));
    const std::string path = std::string(argv[1]) + "/" + std::string(LevelName(level)) + ".json";
    const Status written = text.has_value() ? WriteFileAtomically(path, *text) : Fail(text.error());
    if (!written.has_value()) {
      std::fprintf(stderr, "list_cases: %s\n", written.error().ToString().c_str());
      return 3;
    }
  }
  return 0;
}
