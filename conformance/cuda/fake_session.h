// SPDX-License-Identifier: Apache-2.0
// FakeSession: a small synthetic checkpoint with a drafter, opened by the CUDA backend on a fake
// device. Weights are random, and no kernel runs: for what surrounds arithmetic, not for it.
#ifndef HALLMARK_CONFORMANCE_CUDA_FAKE_SESSION_H_
#define HALLMARK_CONFORMANCE_CUDA_FAKE_SESSION_H_

#include <memory>
#include <string>

#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/drafter_writer.h"
#include "engine/backend/cuda/cuda_backend.h"
#include "engine/backend/cuda/fake_device.h"
#include "engine/run/session.h"

namespace hallmark {

// Two folders below `folder`.
struct FakeFiles {
  std::string checkpoint;
  std::string drafter;

  static Result<FakeFiles> Write(const std::string& folder) {
    FakeFiles files{folder + "/checkpoint", folder + "/drafter"};
    // Large enough for blocks of every kind: whole ones of the driver and many slabs.
    constexpr int64_t kHidden = 256;
    constexpr int64_t kVocab = 2000;
    TRY(CheckpointWriter({.hidden = kHidden, .intermediate = 2048, .vocab = kVocab})
            .Write(files.checkpoint));
    TRY(DrafterWriter({.hidden = kHidden, .intermediate = 1024, .vocab = kVocab})
            .Write(files.drafter));
    return files;
  }
};

// The backend, and a session on it with all that it allocates ahead.
inline Result<std::unique_ptr<Session>> OpenFakeSession(const FakeFiles& files,
                                                        FakeCudaDevice& device, bool mapped) {
  auto backend = TRY(MakeCudaBackend(device, {.mapped_tables = mapped}));
  return Session::Open(files.checkpoint,
                       {.device = "cuda", .mapped_embedding = mapped, .drafter = files.drafter},
                       std::move(backend));
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CUDA_FAKE_SESSION_H_
