// SPDX-License-Identifier: Apache-2.0
// MutateFolder: changes a packed folder (packed_folder.h): one file by the structure of its JSON,
// or which files there are and what they are called. For fuzzing alone. Deterministic.
#ifndef HALLMARK_FUZZ_MUTATORS_FOLDER_MUTATOR_H_
#define HALLMARK_FUZZ_MUTATORS_FOLDER_MUTATOR_H_

#include <string>

#include "fuzz/mutators/json_mutator.h"

namespace hallmark::fuzz {

// May be larger than max_size; the caller then drops it.
std::string MutateFolder(std::string packed, Mutation& mutation);

}  // namespace hallmark::fuzz

#endif  // HALLMARK_FUZZ_MUTATORS_FOLDER_MUTATOR_H_
