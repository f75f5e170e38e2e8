// SPDX-License-Identifier: Apache-2.0
// The text side of a checkpoint's folder under validation: tokenizer, generation config, stop ids,
// chat template, and the licence, each against the others and the model's vocabulary. Clauses:
// format-accept, format-reject. Templates are not run: what one would render is not looked at.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TEXT_FILES_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TEXT_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/validate/checks.h"
#include "conformance/validate/model_files.h"
#include "conformance/validate/watched_folder.h"

namespace hallmark {

struct TextFiles {
  std::optional<int64_t> tokens;       // of the tokenizer
  std::vector<int64_t> stop_ids;       // the union, ascending
  std::optional<std::string> licence;  // as README.md or the licence's file name states it
};

TextFiles ReadTextFiles(WatchedFolder& folder, const ModelFiles& model, FindingList* findings);

// The licence alone, for a drafter.
std::optional<std::string> ReadLicence(WatchedFolder& folder, FindingList* findings);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TEXT_FILES_H_
