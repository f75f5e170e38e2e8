// SPDX-License-Identifier: Apache-2.0
// write_noisy_source QUANTIZED OUT: a source for a quantized checkpoint (noisy_source.h), for tests
// that run the program.
#include <cstdio>

#include "conformance/validate/noisy_source.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_noisy_source QUANTIZED OUT\n");
    return 2;
  }
  const hallmark::Status written = hallmark::WriteNoisySource(argv[1], argv[2]);
  if (written.has_value()) return 0;
  std::fprintf(stderr, "write_noisy_source: %s\n", written.error().ToString().c_str());
  return 1;
}
