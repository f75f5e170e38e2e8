// SPDX-License-Identifier: Apache-2.0
// Writes a synthetic checkpoint's folder: config, shards, index. In pieces of bounded size; shards
// of 4 GiB at most unless one tensor is larger. Whoever calls decides where and makes it atomic.
#ifndef HALLMARK_TOOLS_HALLMARK_SYNTH_FILES_H_
#define HALLMARK_TOOLS_HALLMARK_SYNTH_FILES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/result.h"
#include "engine/format/synth_model.h"

namespace hallmark {

struct SynthFilesOptions {
  uint64_t seed = 0;
  // Headers and codebook markers alone; the rest of each file is a hole of the right size.
  bool headers_only = false;
  // Called now and then with the bytes of data written so far.
  std::function<void(uint64_t)> progress;
};

uint64_t DataBytes(const SynthCheckpoint& checkpoint);

// Into `folder`, which is there and empty. kIo names the file that could not be written.
Status WriteSynthFiles(const SynthCheckpoint& checkpoint, const std::string& folder,
                       const SynthFilesOptions& options);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_SYNTH_FILES_H_
