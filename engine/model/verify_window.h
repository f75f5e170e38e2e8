// SPDX-License-Identifier: Apache-2.0
// VerifyWindow: rows that went through a model and wait for their verdict. The pass that verified
// them read the sequence's committed state and stored keys and values beyond its end; per DeltaNet
// layer the window remembers what a replay of the first rows needs. ForwardPass::Commit makes any
// number of them, from none to all, part of the sequence, bit for bit as if they had been fed
// (clause commit-equals-serial). Move-only, reusable.
#ifndef HALLMARK_ENGINE_MODEL_VERIFY_WINDOW_H_
#define HALLMARK_ENGINE_MODEL_VERIFY_WINDOW_H_

#include <cstdint>
#include <vector>

#include "engine/model/model.h"

namespace hallmark {

class VerifyWindow {
 public:
  // Room for `max_rows` rows of `model`.
  static Result<VerifyWindow> Create(const Model& model, int64_t max_rows);

  int64_t max_rows() const { return max_rows_; }
  // Rows waiting; 0 after a commit.
  int64_t rows() const { return rows_; }

 private:
  friend class ForwardPass;
  // Before the convolution, so that the convolution's own window can be moved on too.
  struct Record {
    Buffer qkv;   // [max_rows, channels]
    Buffer a, b;  // [max_rows, value_heads]
  };

  uint64_t identity_ = 0;
  int64_t max_rows_ = 0;
  int64_t rows_ = 0;
  int64_t position_ = 0;         // of the sequence when the rows were verified
  std::vector<Record> records_;  // one a layer; empty buffers where it is attention
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_VERIFY_WINDOW_H_
