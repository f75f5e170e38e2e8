// SPDX-License-Identifier: Apache-2.0
// Bpe: byte-pair merging of one piece of text. A piece starts as its bytes' tokens; as long as some
// neighbouring pair has a merge, the pair of lowest rank (leftmost among equals) becomes one token.
// Not for splitting text into pieces (pre_tokenizer.h) or for reading files (tokenizer_file.h).
// Time is O(n log n) and memory O(n) in the bytes of the piece, so one piece of a megabyte is fine.
#ifndef HALLMARK_ENGINE_TEXT_BPE_H_
#define HALLMARK_ENGINE_TEXT_BPE_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hallmark {

// Neighbours `left`, `right` become `result`. A rule's rank is its index in the list of merges.
struct MergeRule {
  int32_t left = 0;
  int32_t right = 0;
  int32_t result = 0;
};

class Bpe {
 public:
  // Buffers that Encode keeps between calls; one per thread.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      int32_t id;  // -1 once merged into its left neighbour
      int32_t previous;
      int32_t next;  // -1 at the ends
    };
    std::vector<Symbol> symbols_;
    std::vector<uint64_t> queue_;  // rank << 32 | position, a min-heap
  };

  // `byte_ids[b]` is the token of byte b. Ids are below `vocab_size`, no pair has two rules, and
  // there are fewer than 2^31 (CHECK).
  Bpe(const std::array<int32_t, 256>& byte_ids, std::vector<MergeRule> merges, int32_t vocab_size);

  // Appends the tokens of `piece`, which holds fewer than 2^31 bytes (CHECK).
  void Encode(std::string_view piece, Scratch* scratch, std::vector<int32_t>* ids) const;

 private:
  struct Candidate {
    int32_t right;
    int32_t rank;
  };
  // Rank of the rule for a pair, or -1.
  int32_t RankOf(int32_t left, int32_t right) const;

  std::array<int32_t, 256> byte_ids_;
  std::vector<MergeRule> merges_;      // by rank
  std::vector<uint32_t> row_;          // [vocab_size + 1], left token -> its slice of candidates_
  std::vector<Candidate> candidates_;  // ascending `right` within a row
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_BPE_H_
