// SPDX-License-Identifier: Apache-2.0
// ForwardPass: the qwen3_5 forward pass, written once over the backend's operations, with its
// scratch memory. How ids are cut into calls, and which sequences share one, changes no bit
// (clauses chunked-equals-whole, concurrent-equals-solo, verify-equals-serial).
#ifndef HALLMARK_ENGINE_MODEL_FORWARD_H_
#define HALLMARK_ENGINE_MODEL_FORWARD_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/model/scratch_layout.h"
#include "engine/model/sequence.h"
#include "engine/model/verify_window.h"

namespace hallmark {

enum class LogitRows { kNone, kLast, kAll };

struct ForwardRequest {
  LogitRows logits = LogitRows::kLast;
  // Residual rows to copy out: 0 is the embedding, L the output of layer L - 1.
  std::vector<int> taps;
};

// fp32, on the host.
struct ForwardOutput {
  std::vector<float> logits;             // [0, 1 or ids, vocab_size]
  std::vector<std::vector<float>> taps;  // one per requested tap, [ids, hidden]
};

// One sequence's part of a pass.
struct PassSlice {
  Sequence* sequence = nullptr;
  std::span<const int32_t> ids;  // fed at sequence->position() and after
  LogitRows logits = LogitRows::kLast;
  // Null: the rows join the sequence. Else they wait in the window for Commit, and the sequence
  // stays where it is.
  VerifyWindow* window = nullptr;
};

struct ScratchOptions {
  // The phases of a layer share memory (scratch_layout.h).
  bool overlap = true;
  // Whenever a phase has ended, fill the memory they share with NaN, so that a value read from a
  // phase that is over shows (clause scratch-clean). Changes no bit.
  bool poison = false;
};

class ForwardPass {
 public:
  // Rows that go through the layers at once; more ids are fed in pieces of this size.
  static constexpr int64_t kMaxRows = 1024;

  // Allocates scratch for up to `max_rows` (1 .. kMaxRows). `model` must outlive the pass. The
  // residual rows `taps` (numbered as in ForwardRequest) of each call are gathered on the backend.
  static Result<ForwardPass> Create(const Model& model, int64_t max_rows = kMaxRows,
                                    std::vector<int> taps = {}, const ScratchOptions& scratch = {});

  // Feeds ids at sequence.position() and moves it on. kOutOfRange for an id outside the vocabulary,
  // for no ids, or past max_positions: then nothing has changed. After any other error the sequence
  // is of no use and says so when it is used again.
  Result<ForwardOutput> Run(Sequence& sequence, std::span<const int32_t> ids,
                            const ForwardRequest& request = {});

  // Feeds several sequences at once, each named once, max_rows() rows at most in all. Gives the
  // logits of each slice, [rows asked for, vocab_size], on the host. Errors as Run's; a sequence
  // whose rows wait in a window is unharmed by any.
  Result<std::vector<std::vector<float>>> RunSlices(std::span<const PassSlice> slices);

  // Makes the first `rows` rows of the window part of the sequence and empties the window.
  // `sequence` is the one that was verified and has not moved since (checked).
  Status Commit(Sequence& sequence, VerifyWindow& window, int64_t rows);

  int64_t max_rows() const { return max_rows_; }
  // [rows of the last piece or of all slices in order, taps * hidden], tap by tap in the order
  // given to Create; the backend's memory, until the next call.
  ConstRows taps() const { return taps_; }

 private:
  explicit ForwardPass(const Model& model) : model_(&model) {}
  Status CheckSlice(const PassSlice& slice) const;
  // `host_taps` (may be null) takes the residual rows of `request`.
  Status RunPass(std::span<const PassSlice> slices, const ForwardRequest* request,
                 ForwardOutput* host_taps);
  Status RunLayers(std::span<const PassSlice> slices, std::span<const RowPosition> positions,
                   const ForwardRequest* request, ForwardOutput* host_taps);
  Status Replay(const Sequence& sequence, const VerifyWindow& window, int64_t rows);
  Status Tap(int index, Rows hidden, const ForwardRequest* request, ForwardOutput* host_taps);
  Status RunAttention(const ModelLayer& layer, size_t index, std::span<const PassSlice> slices,
                      std::span<const RowPosition> positions, int64_t rows);
  Status RunDeltaNet(const ModelLayer& layer, size_t index, std::span<const PassSlice> slices,
                     int64_t rows);
  Status RunMlp(const ModelLayer& layer, int64_t rows);
  // A row of the last call whose logits are appended to `out`.
  struct HeadRow {
    int64_t row;
    std::vector<float>* out;
  };
  Status RunHead(std::span<const HeadRow> rows);
  Status EndPhase();
  Rows Scratch(ScratchPart part, int64_t rows) const {
    return {places_[static_cast<size_t>(part)], rows, layout_.at(part).cols};
  }

  const Model* model_;
  uint64_t identity_ = 0;
  int64_t max_rows_ = 0;
  ScratchOptions scratch_;
  ScratchLayout layout_;
  Buffer shared_;                              // what the phases use in turn
  std::array<Buffer, kScratchParts> buffers_;  // of the parts outside it
  std::array<float*, kScratchParts> places_ = {};
  Buffer positions_;  // int64 [max_rows]: where each slice of the call begins
  std::vector<int> tap_indices_;
  ConstRows taps_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_FORWARD_H_
