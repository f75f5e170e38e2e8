// SPDX-License-Identifier: Apache-2.0
// MustPass: the names of the cases a receipt of one level must hold, from the committed lists. A
// case that is missing from the rows counts as worse than one that could not decide: it is how a
// receipt would hide a fault.
#ifndef HALLMARK_RECEIPTS_EMIT_MUST_PASS_H_
#define HALLMARK_RECEIPTS_EMIT_MUST_PASS_H_

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/levels.h"
#include "conformance/harness/row.h"
#include "engine/base/result.h"

namespace hallmark {

// What a drafter's files are called where they stand beside the checkpoint's.
inline constexpr char kDrafterPrefix[] = "drafter/";

// A checkpoint, or a checkpoint and its drafter, with a published reference: known by the digests
// of its files, never by its name.
struct GoldenModel {
  std::string name;                          // folder under golden/models
  std::map<std::string, std::string> files;  // file name to SHA-256; a drafter's with its prefix
  std::vector<std::string> cases;            // "clause/case", needed besides the level's own
};

struct MustPassList {
  Level level = Level::kL0;
  std::vector<std::string> cases;  // "clause/case"
  // Backend to the cases that its receipts hold besides, and no others.
  std::map<std::string, std::vector<std::string>> backends;
  std::vector<GoldenModel> golden_models;
};

// kMalformed with a pointer when the text is not such a list.
Result<MustPassList> ParseMustPass(std::string_view text, const std::string& file);
// The list this build carries; aborts if it is malformed, since the build is broken then.
MustPassList BuildMustPass(Level level);
// SHA-256 of the canonical text of the list this build carries.
std::string MustPassDigest(Level level);

// The golden model whose files all have the digests given (file name to SHA-256); null if none.
const GoldenModel* FindGoldenModel(const MustPassList& list,
                                   const std::map<std::string, std::string>& digests);

struct Verdict {
  Outcome outcome = Outcome::kHarnessError;  // the worst of all rows; kFail when one is missing
  std::vector<std::string> missing;          // needed, and not among the rows
};

// Judges rows of a backend against the lists of `level` and every level below it.
Verdict Judge(Level level, const std::string& backend,
              const std::map<std::string, std::string>& digests, std::span<const Row> rows);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_MUST_PASS_H_
