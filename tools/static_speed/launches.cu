// SPDX-License-Identifier: Apache-2.0
// What the static figures need of the code itself, printed without a GPU:
//   launches shared              dynamic shared memory of each kernel that asks for some, a line
//                                "NAME BYTES" each, from the constants that its launch uses
//   launches blocks < LINES      for lines "ARCHITECTURE REGISTERS THREADS STATIC DYNAMIC" how many
//                                blocks a multiprocessor holds, by the toolkit's own
//                                cuda_occupancy.h
#include <cuda_occupancy.h>

#include <cstdio>
#include <cstring>

#include "kernels/exl3/exl3_linear.cuh"
#include "kernels/exl3/exl3_prompt.cuh"
#include "kernels/mixers/attention_chunks.cuh"

namespace hallmark {
namespace {

template <int kK2>
void PrintLinears() {
  std::printf("linear %d 8 %zu\n", kK2, Exl3Shape<kK2, 1>::kSharedBytes);
  std::printf("linear %d 16 %zu\n", kK2, Exl3Shape<kK2, 2>::kSharedBytes);
  std::printf("linear %d 32 %zu\n", kK2, Exl3Shape<kK2, 4>::kSharedBytes);
  std::printf("linear %d 64 %zu\n", kK2, Exl3Shape<kK2, 8>::kSharedBytes);
  std::printf("linear %d 128 %zu\n", kK2, Exl3Shape<kK2, 16>::kSharedBytes);
}

void PrintShared() {
  PrintLinears<6>();
  PrintLinears<7>();
  PrintLinears<8>();
  PrintLinears<12>();
  std::printf("prompt y %zu\n", Exl3PromptLayout<true>::kBytes);
  std::printf("prompt shared %zu\n", Exl3PromptLayout<false>::kBytes);
  std::printf("attention 1 %d\n", AttentionChunkLayout<256, 1>::kBytes);
  std::printf("attention 3 %d\n", AttentionChunkLayout<256, 3>::kBytes);
}

// Limits of a multiprocessor: CUDA's programming guide, "Technical Specifications per Compute
// Capability". The blocks it holds and how memory is handed out are cuda_occupancy.h's.
bool Describe(int architecture, cudaOccDeviceProp* card) {
  card->maxThreadsPerBlock = 1024;
  card->regsPerBlock = card->regsPerMultiprocessor = 65536;
  card->warpSize = 32;
  card->sharedMemPerBlock = 48 << 10;
  card->reservedSharedMemPerBlock = 1 << 10;
  card->computeMajor = architecture / 10;
  card->computeMinor = architecture % 10;
  switch (architecture) {
    case 86:
    case 121:
      card->maxThreadsPerMultiprocessor = 1536;
      card->sharedMemPerMultiprocessor = 100 << 10;
      break;
    case 90:
      card->maxThreadsPerMultiprocessor = 2048;
      card->sharedMemPerMultiprocessor = 228 << 10;
      break;
    default:
      return false;
  }
  card->sharedMemPerBlockOptin = card->sharedMemPerMultiprocessor - 1024;
  card->numSms = 1;
  return true;
}

int PrintBlocks() {
  int architecture = 0, registers = 0, threads = 0;
  size_t fixed = 0, dynamic = 0;
  while (std::scanf("%d %d %d %zu %zu", &architecture, &registers, &threads, &fixed, &dynamic) ==
         5) {
    cudaOccDeviceProp card;
    if (!Describe(architecture, &card)) {
      std::fprintf(stderr, "launches: sm_%d is not described\n", architecture);
      return 1;
    }
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = threads;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = fixed;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = dynamic;
    kernel.numBlockBarriers = 1;
    cudaOccDeviceState state;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result;
    const cudaOccError error =
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, &card, &kernel, &state, threads, dynamic);
    if (error != CUDA_OCC_SUCCESS) {
      std::fprintf(stderr, "launches: cuda_occupancy.h gives error %d\n", error);
      return 1;
    }
    std::printf("%d\n", result.activeBlocksPerMultiprocessor);
  }
  return 0;
}

}  // namespace
}  // namespace hallmark

int main(int count, char** words) {
  if (count == 2 && std::strcmp(words[1], "shared") == 0) {
    hallmark::PrintShared();
    return 0;
  }
  if (count == 2 && std::strcmp(words[1], "blocks") == 0) return hallmark::PrintBlocks();
  std::fprintf(stderr, "launches: expected 'shared' or 'blocks'\n");
  return 2;
}
