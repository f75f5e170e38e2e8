// SPDX-License-Identifier: Apache-2.0
// The shards of a folder under validation: the index, each header, and the two against each other.
// What CheckpointFolder does for a model that is to run, here for a folder of which every fault is
// wanted. Clauses: format-accept, format-reject. Reads headers and codebook markers alone.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_WEIGHTS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_WEIGHTS_H_

#include <set>
#include <string>
#include <vector>

#include "conformance/validate/checks.h"
#include "conformance/validate/progress.h"
#include "conformance/validate/watched_folder.h"
#include "engine/base/mapped_file.h"
#include "engine/format/shard_index.h"
#include "engine/format/tensor.h"

namespace hallmark {

struct Weights {
  std::vector<MappedFile> maps;     // what the views point into
  std::vector<TensorView> tensors;  // sorted by name, each name once
  // Names that the index puts in shards that could not be read: absent, and no fault of their own.
  std::set<std::string> excused;
  // False when some shard's tensors are not known at all: then nothing can be called missing.
  bool complete = false;
};

Weights ReadWeights(WatchedFolder& folder, const StepProgress& progress, FindingList* findings);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_WEIGHTS_H_
