// SPDX-License-Identifier: Apache-2.0
// Random checkpoints for properties: any valid model, and one fault put into one. Not for suites
// that need to know which fault it is. Draws from the caller's generator alone.
#ifndef HALLMARK_CONFORMANCE_HARNESS_RANDOM_CHECKPOINT_H_
#define HALLMARK_CONFORMANCE_HARNESS_RANDOM_CHECKPOINT_H_

#include "conformance/harness/checkpoint_writer.h"
#include "engine/base/random.h"

namespace hallmark {

// Any valid model in which every number of the config matters to some tensor: both kinds of layer
// are present.
SyntheticModel RandomCheckpointModel(SplitMix64& random);

// Makes one thing wrong: a tensor, a number of the config, a value, the index.
void SpoilCheckpoint(CheckpointWriter& writer, SplitMix64& random);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_RANDOM_CHECKPOINT_H_
