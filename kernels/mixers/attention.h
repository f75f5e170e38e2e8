// SPDX-License-Identifier: Apache-2.0
// Causal attention over paged keys and values, gated. Not for the drafter's attention, and not for
// preparing q, K and V (attention_inputs.h).
// Implements clauses row-invariance and chunked-equals-whole: a row's bits depend on its query, its
// gate, its position and the keys and values up to it.
//
// The order of sums, fixed by absolute positions alone. Keys are cut into chunks of 512 positions,
// chunks into tiles of 64. Inside a chunk, from its own start:
//   score  = (q . k) * scale, scale = 1 / sqrt(head_dim), q . k one chain of mma.sync.m16n8k16
//            (bf16 in, fp32 accumulator from zero) over the channels in steps of 16;
//   m'     = max(m, scores of the tile); keep = exp(m - m'); p = exp(score - m');
//   sum    = sum * keep + (((s0 + s1) + s2) + s3), s_i over keys 16 i .. 16 i + 15 of the tile, p
//            unrounded: c_t = (p[2t] + p[2t+1]) + (p[8+2t] + p[9+2t]) for t = 0 .. 3, then
//            (c_0 + c_1) + (c_2 + c_3);
//   values = values * keep, then one chain of mma over the tile's keys in steps of 16, p rounded to
//            bf16.
// Chunks are merged in key order, a left fold from the first:
//   m' = max(m, mc); total = total * exp(m - m') + chunk * exp(mc - m')   (sum and values alike),
// and out = values / sum * sigmoid(gate). A key beyond a row's position has score -inf and p = 0,
// which leaves the row's sums as they are; a key that is not stored is read as zero. So values must
// be finite up to the last row of the call; what lies beyond it may be anything.
#ifndef HALLMARK_KERNELS_MIXERS_ATTENTION_H_
#define HALLMARK_KERNELS_MIXERS_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/mixers/attention_shape.h"

namespace hallmark {

inline constexpr int64_t kAttentionChunkKeys = 512;
inline constexpr int64_t kAttentionTileKeys = 64;

// Bytes that LaunchAttention needs when it runs `chunks_per_segment` chunks at a time, at least 1:
// one running total and that many chunks, each (head_dim + 2) fp32 a query vector.
constexpr size_t AttentionWorkspaceBytes(int64_t rows, int heads, int head_dim,
                                         int64_t chunks_per_segment) {
  return static_cast<size_t>(rows) * static_cast<size_t>(heads) *
         static_cast<size_t>(head_dim + 2) * sizeof(float) *
         static_cast<size_t>(chunks_per_segment + 1);
}
// Chunks of a call that sees `keys` keys: more a segment than these are of no use.
constexpr int64_t AttentionChunks(int64_t keys) {
  return (keys + kAttentionChunkKeys - 1) / kAttentionChunkKeys;
}

// Row i stands at position + i, position = *kv.position, and sees keys 0 .. position + i, which are
// stored. `limit` is at least position + rows: the launch has blocks for as many keys, and those
// that no row sees end at once; its value changes no bit. q [rows, heads * head_dim] holds bf16
// values as fp32; q_gate [rows, heads * 2 * head_dim], per head [query | gate]; out [rows, heads *
// head_dim]. q, out and workspace start at a multiple of 16 bytes.
//
// `workspace` needs no initial contents, belongs to this call until the stream has run it, and is
// never shared by two streams. Its chunks a segment change speed alone: the merge is a left fold,
// so that no bit depends on where a segment ends.
//
// head_dim 128 or 256 (others: cudaErrorInvalidValue; a key and a value tile of more channels do
// not fit the 101,376 bytes of shared memory); limit from rows to 2^24. The error is also given
// for a workspace smaller than AttentionWorkspaceBytes.
cudaError_t LaunchAttention(const AttentionShape& shape, KvFormat format, const KvPlace& kv,
                            int64_t limit, int64_t rows, const float* q, const float* q_gate,
                            int64_t chunks_per_segment, void* workspace, size_t workspace_bytes,
                            float* out, cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_ATTENTION_H_
